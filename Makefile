.PHONY: lab test check-fast

lab: ## open JupyterLab on the first lesson
	python3 lab.py

test: ## everything that must hold before a change is merged
	python3 lab.py test

check-fast: ## format, lint, types, contracts and the tests that take seconds
	python3 lab.py test --fast
