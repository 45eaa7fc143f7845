.PHONY: lab test check-fast wheels assignments mark gallery pictures bench bench-deps bench-report

# The environment that `make lab` has made, else whatever Python is active.
PYTHON = $(firstword $(wildcard .venv/bin/python .venv/Scripts/python.exe) python3)

lab: ## open JupyterLab on the first lesson
	python3 lab.py

test: ## everything that must hold before a change is merged
	python3 lab.py test

check-fast: ## format, lint, types, contracts and the tests that take seconds
	python3 lab.py test --fast

wheels: ## download all that the lab needs into build/wheels, for machines without a network
	python3 lab.py wheels

COURSE ?= build/course
assignments: ## a course folder for nbgrader, made from the lessons: make assignments [COURSE=dir]
	$(PYTHON) notebooks/course.py --out "$(COURSE)"

OUT ?= build/marks
mark: ## mark a folder of notebooks: make mark SUBMISSIONS=dir [OUT=dir]
	$(if $(SUBMISSIONS),,$(error say which folder: make mark SUBMISSIONS=dir))
	$(PYTHON) -m autodiff_exercises.marking "$(SUBMISSIONS)" --out "$(OUT)"

gallery: ## one page with every view on real graphs, build/gallery/index.html
	$(PYTHON) widgets/gallery.py

pictures: ## the gallery, and from it the README's pictures; needs Chromium
	$(PYTHON) widgets/gallery.py --pictures

BENCH = $(firstword $(wildcard build/bench/bin/python build/bench/Scripts/python.exe) $(PYTHON))
bench: ## speed and memory beside every peer that is installed: benchmarks/results/engine.txt and engine.json
	PYTHONPATH=. $(BENCH) -m benchmarks.engine --out benchmarks/results

EXTRAS ?= bench,jit
bench-deps: ## the peers, some hundred MB to some GB, in build/bench; with a GPU: make bench-deps EXTRAS=bench,jit,gpu
	$(PYTHON) -m venv build/bench
	$(PYTHON) -m pip --python build/bench install -e ".[$(EXTRAS)]"

bench-report: ## how time and memory grow with size: benchmarks/results/growth.html
	PYTHONPATH=.:widgets $(PYTHON) -m benchmarks.growth
