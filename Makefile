.PHONY: lab test check-fast wheels

lab: ## open JupyterLab on the first lesson
	python3 lab.py

test: ## everything that must hold before a change is merged
	python3 lab.py test

check-fast: ## format, lint, types, contracts and the tests that take seconds
	python3 lab.py test --fast

wheels: ## download all that the lab needs into build/wheels, for machines without a network
	python3 lab.py wheels
