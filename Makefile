# demo and test set everything up; the rest expects that one of them ran.
PYTHON ?= python3
# Of the tests: a file is one process's, so that what its tests share is made once.
PROCESSES ?= 2
BIN := .venv/bin

.PHONY: demo demo-gui test setup setup-test lint types imports pytest bench bench-quality soak clean
.PHONY: screenshots readme-images test-monkey test-families test-engines engine-table test-kernels test-gpu-names test-gpu test-vcam

demo: setup
	$(BIN)/ffrt demo --out demo

demo-gui: setup-test
	if [ -z "$$DISPLAY$$WAYLAND_DISPLAY$$QT_QPA_PLATFORM" ]; then \
		if command -v xvfb-run >/dev/null; then set -- xvfb-run -a -s "-screen 0 1600x1000x24"; else set -- env QT_QPA_PLATFORM=offscreen; fi; \
	fi; "$$@" $(BIN)/python scripts/demo_gui.py demo/gui

# Every page in light and dark, three languages and two sizes.
screenshots: setup-test
	mkdir -p demo/pages
	FFRT_SCREENSHOTS=$(CURDIR)/demo/pages $(BIN)/python -m pytest tests/test_gui_pages.py -k "every_page or long_words"

test: setup-test
	$(MAKE) --no-print-directory lint types imports pytest

setup:
	sh scripts/setup.sh $(PYTHON)

setup-test:
	sh scripts/setup.sh $(PYTHON) test

lint:
	$(BIN)/ruff check app rt engines tests scripts

types:
	$(BIN)/mypy

imports:
	$(BIN)/lint-imports

pytest:
	$(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile

bench: setup
	$(BIN)/ffrt bench live --seconds 60 --report bench/live-720p.json
	$(BIN)/ffrt bench live --seconds 60 --input synthetic:size=1920x1080 --report bench/live-1080p.json
	$(BIN)/ffrt bench live --seconds 20 --slow swap:100 --report bench/overload.json

soak: setup
	$(BIN)/ffrt bench live --seconds 600 --report bench/soak.json

bench-quality: setup
	$(BIN)/pip install -q -e '.[bench]'
	$(BIN)/ffrt bench quality --clips $(CLIPS) --sources $(SOURCES) --report bench/quality.json --sheets bench/sheets

readme-images: setup-test
	if [ -z "$$DISPLAY$$WAYLAND_DISPLAY$$QT_QPA_PLATFORM" ]; then set -- env QT_QPA_PLATFORM=offscreen; fi; \
	"$$@" $(BIN)/python scripts/readme_images.py docs/images

# 200 random operations at the window while live; FFRT_SEED=N repeats one. One arena: memory that threads keep would hide a leak.
test-monkey: setup-test
	MALLOC_ARENA_MAX=1 FFRT_MONKEY=$${FFRT_MONKEY-200} $(BIN)/python -m pytest -s tests/test_monkey.py

test-families: setup-test
	$(BIN)/pip install -q -e '.[bench]'
	FFRT_SWEEP=1 $(BIN)/python -m pytest tests/test_family_commands.py

test-engines: setup-test
	$(BIN)/pip install -q -e '.[engines]'
	$(BIN)/pip install -q --no-deps tensorrt-cu13-bindings # 1 MB: the names of TensorRT itself, whose libraries are NVIDIA's alone to give
	FFRT_SWEEP=1 $(BIN)/python -m pytest -m 'not gpu' \
		tests/test_engine_build.py tests/test_engines_cli.py tests/test_trt_api.py tests/test_tensorrt_session.py tests/test_trial.py

engine-table: setup-test
	$(BIN)/pip install -q -e '.[engines]'
	PYTHONPATH=tests $(BIN)/python scripts/engine_table.py docs/engine-builds.md

# Every kernel for every chip by NVRTC (no GPU), on the host against the compositor, and once more with every access looked at.
test-kernels: setup-test
	$(BIN)/pip install -q -e '.[kernels]'
	FFRT_SWEEP=1 $(BIN)/python -m pytest tests/test_kernels_*.py tests/test_compose_device.py tests/test_networks_in_place.py
	FFRT_SANITIZE=1 ASAN_OPTIONS=detect_leaks=0 \
		LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
		$(BIN)/python -m pytest tests/test_kernels_*.py
	$(BIN)/python scripts/kernel_table.py docs/kernels.md

# 1 GB, no GPU: are the names that ffrt takes from CUDA's packages really there?
test-gpu-names: setup-test
	$(BIN)/pip install -q -e '.[gpu]'
	$(BIN)/python -m pytest tests/test_cuda_device.py tests/test_kernels_build.py tests/test_trt_api.py

# The row is printed also where a test failed: that is worth as much.
test-gpu:
	@$(PYTHON) scripts/need_gpu.py
	$(MAKE) --no-print-directory test-gpu-names
	mkdir -p bench
	rm -f bench/gpu.json bench/gpu.xml
	FFRT_REQUIRE_GPU=1 FFRT_GPU_RESULTS=$(CURDIR)/bench/gpu.json $(BIN)/python -m pytest -m gpu --junitxml bench/gpu.xml; status=$$?; \
		$(BIN)/python scripts/gpu_table.py bench/gpu.json bench/gpu.xml; exit $$status

test-vcam: setup-test
	bash tests/qemu_v4l2/run.sh .venv/qemu .venv tests/qemu_v4l2/guest.py

clean:
	rm -rf .venv demo bench build *.egg-info
