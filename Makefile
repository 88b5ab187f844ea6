# flaunch: one build. `make demo` and `make check` install what is missing;
# `make` alone builds with what is there.

BUILD ?= build
PREFIX ?= /usr/local
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
VERSION := $(shell sed -n 's/.*VERSION_TEXT "\(.*\)"/\1/p' common/version.h)
ABI := 0

# SAN=1: address and undefined sanitizers, for check-asan.
ifdef SAN
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
OPT ?= -O1
endif
OPT ?= -O2
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wformat=2 -Wundef -Wimplicit-fallthrough
WERROR ?=
CPPFLAGS += -I. -D_GNU_SOURCE
CFLAGS += -std=gnu11 -g $(OPT) $(WARN) $(WERROR) -fPIC -pthread $(SANFLAGS)
CXXFLAGS += -std=c++17 -g $(OPT) -Wall -Wextra -fPIC -pthread $(SANFLAGS)
LDFLAGS += -pthread $(SANFLAGS)

# The archive of libuv starts faster than the shared object; either will do.
UV_A := $(firstword $(wildcard /usr/lib/*/libuv_a.a /usr/lib/*/libuv.a))
UV := $(if $(UV_A),$(UV_A) -lrt,-luv) -ldl
JANSSON := $(or $(firstword $(wildcard /usr/lib/*/libjansson.a)),-ljansson)
GLOO := $(firstword $(wildcard /usr/include/gloo/allreduce.h \
	/usr/local/include/gloo/allreduce.h))

# V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $@)

# Headers of CUDA, NCCL and PMIx check our declarations where they are found:
# CUDA_HOME, NCCL_HOME, the system, what `make deps-nvidia` fetched.
NVIDIA ?= build/nvidia
CUDA_INC := $(firstword $(dir $(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h \
	/usr/local/cuda/include/cuda_runtime_api.h \
	/usr/include/cuda_runtime_api.h \
	$(NVIDIA)/nvidia/*/include/cuda_runtime_api.h)))
NCCL_INC := $(firstword $(dir $(wildcard $(NCCL_HOME)/include/nccl.h \
	/usr/include/nccl.h $(NVIDIA)/nvidia/nccl/include/nccl.h)))

COMMON := $(wildcard common/*.c)
LAUNCHER := $(filter-out %_check.c,$(wildcard launcher/*.c))
ifneq ($(wildcard /usr/include/hwloc.h),)
LAUNCHER += launcher/hwloc_check.c
endif
PMIX_INC := $(firstword $(dir $(wildcard /usr/include/pmix.h \
	/usr/lib/*/pmix2/include/pmix.h)))

WORKER := $(filter-out %_check.c,$(wildcard worker/*.c))
ifneq ($(PMIX_INC),)
WORKER += worker/pmix_check.c
$(BUILD)/worker/pmix_check.o: CPPFLAGS += -isystem $(PMIX_INC)
endif
ifneq ($(CUDA_INC),)
WORKER += worker/cuda_check.c
$(BUILD)/worker/cuda_check.o: CPPFLAGS += -isystem $(CUDA_INC)
ifneq ($(NCCL_INC),)
WORKER += worker/nccl_check.c
$(BUILD)/worker/nccl_check.o: CPPFLAGS += -isystem $(NCCL_INC) \
	-isystem $(CUDA_INC)
endif
endif
# Examples that call CUDA and NCCL themselves are built where both headers are.
CUDA_NAMES := $(if $(and $(CUDA_INC),$(NCCL_INC)),$(notdir $(basename \
	$(wildcard worker/examples/cuda/*.c))))
EXAMPLES := $(patsubst %.c,$(BUILD)/examples/%,$(notdir $(wildcard worker/examples/*.c)))

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
COMMON_O := $(call obj,$(COMMON))
LAUNCHER_O := $(call obj,$(LAUNCHER))
WORKER_O := $(call obj,$(WORKER))

SO := $(BUILD)/libflaunch.so
GLOO_SO := $(BUILD)/libflaunch_gloo.so

.PHONY: all
all: $(BUILD)/flaunch $(BUILD)/libflaunch.a $(SO) \
	$(if $(GLOO),$(GLOO_SO)) $(EXAMPLES) $(BUILD)/flaunch.pc

$(BUILD)/flaunch: $(LAUNCHER_O) $(COMMON_O)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(UV) $(JANSSON)

$(BUILD)/libflaunch.a: $(WORKER_O) $(COMMON_O)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(SO).$(ABI): $(WORKER_O) $(COMMON_O) worker/flaunch.map
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libflaunch.so.$(ABI) \
		-Wl,--version-script,worker/flaunch.map -Wl,-rpath,'$$ORIGIN' \
		-o $@ $(WORKER_O) $(COMMON_O) -luv -ldl

$(SO): $(SO).$(ABI)
	@ln -sf libflaunch.so.$(ABI) $@

$(GLOO_SO).$(ABI): $(BUILD)/worker/gloo_shim.o worker/gloo.map
	$(call say,LD)
	$(Q)$(CXX) $(LDFLAGS) -shared -Wl,-soname,libflaunch_gloo.so.$(ABI) \
		-Wl,--version-script,worker/gloo.map -o $@ $< -lgloo

$(GLOO_SO): $(GLOO_SO).$(ABI)
	@ln -sf libflaunch_gloo.so.$(ABI) $@

$(BUILD)/examples/%: $(BUILD)/worker/examples/%.o $(SO)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/..' -o $@ $< -L$(BUILD) \
		-lflaunch -lm

$(BUILD)/worker/examples/cuda/%.o: CPPFLAGS += -isystem $(NCCL_INC) \
	-isystem $(CUDA_INC)

# Linked where their libraries are as well: beside the headers, or in the
# system.
CUDA_SO := $(firstword $(wildcard $(CUDA_INC)../lib64/libcudart.so* \
	$(CUDA_INC)../lib/libcudart.so* /usr/lib/*/libcudart.so*))
NCCL_SO := $(firstword $(wildcard $(NCCL_INC)../lib/libnccl.so* \
	/usr/lib/*/libnccl.so*))
ifneq ($(and $(CUDA_NAMES),$(CUDA_SO),$(NCCL_SO)),)
all: $(addprefix $(BUILD)/examples/,$(CUDA_NAMES))
endif
$(addprefix $(BUILD)/examples/,$(CUDA_NAMES)): $(BUILD)/examples/%: \
		$(BUILD)/worker/examples/cuda/%.o $(SO)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/..' -o $@ $< -L$(BUILD) \
		-lflaunch $(NCCL_SO) $(CUDA_SO)

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.cc Makefile
	@mkdir -p $(@D)
	$(call say,CXX)
	$(Q)$(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/flaunch.pc: common/version.h Makefile
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' \
		'includedir=$${prefix}/include' '' 'Name: flaunch' \
		'Description: ranks, rendezvous and collectives for training jobs' \
		'Version: $(VERSION)' 'Cflags: -I$${includedir}' \
		'Libs: -L$${libdir} -lflaunch' \
		'Libs.private: -luv -ldl -pthread' > $@

.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

# --- what users run -----------------------------------------------------

.PHONY: deps
deps:
	@tests/tools/deps build

.PHONY: demo
demo: deps
	@$(MAKE) --no-print-directory all
	$(BUILD)/flaunch --nproc_per_node=4 $(BUILD)/examples/train \
		worker/examples/digits.csv

.PHONY: check
check:
	@tests/tools/deps build test
	@$(MAKE) --no-print-directory check-built

.PHONY: install
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig \
		$(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/man/man3 \
		$(DESTDIR)$(PREFIX)/share/man/man7
	install -m 755 $(BUILD)/flaunch $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(BUILD)/libflaunch.a $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(SO).$(ABI) $(DESTDIR)$(PREFIX)/lib/
	ln -sf libflaunch.so.$(ABI) $(DESTDIR)$(PREFIX)/lib/libflaunch.so
	if [ -e $(GLOO_SO).$(ABI) ]; then \
		install -m 755 $(GLOO_SO).$(ABI) $(DESTDIR)$(PREFIX)/lib/ && \
		ln -sf libflaunch_gloo.so.$(ABI) \
			$(DESTDIR)$(PREFIX)/lib/libflaunch_gloo.so; fi
	sed 's|^prefix=.*|prefix=$(PREFIX)|' $(BUILD)/flaunch.pc \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/flaunch.pc
	install -m 644 worker/flaunch.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 man/*.3 $(DESTDIR)$(PREFIX)/share/man/man3/
	install -m 644 man/*.7 $(DESTDIR)$(PREFIX)/share/man/man7/
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(BUILD)/flaunch --print-completion bash \
		> $(DESTDIR)$(PREFIX)/share/bash-completion/completions/flaunch
	$(BUILD)/flaunch --print-completion zsh \
		> $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_flaunch
	$(BUILD)/flaunch --print-completion fish \
		> $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/flaunch.fish

.PHONY: clean
clean:
	rm -rf $(BUILD)

# --- tests ----------------------------------------------------------------

UNIT := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
FAULT := $(patsubst tests/fault/%.c,$(BUILD)/tests/fault/%,$(wildcard tests/fault/test_*.c))
PROGS := $(patsubst tests/progs/%.c,$(BUILD)/tests/progs/%,$(wildcard tests/progs/*.c))
FUZZ_NAMES := $(basename $(notdir $(wildcard tests/fuzz/fuzz_*.c)))
REPLAY := $(addprefix $(BUILD)/tests/fuzz/,$(FUZZ_NAMES))
STANDIN := $(addprefix $(BUILD)/tests/standin/,libnccl.so.2 libcudart.so \
	libcuda.so.1 libspy.so)
BENCH := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(wildcard tests/bench/*.c))

# What tests link: everything but main.
PARTS_O := $(filter-out $(BUILD)/launcher/main.o,$(LAUNCHER_O)) \
	$(filter-out $(BUILD)/worker/flaunch.o,$(WORKER_O)) $(COMMON_O)

$(BUILD)/parts.a: $(PARTS_O)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/parts.a
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(UV) $(JANSSON) -ldl

# The n-th call of these fails where a test says so. libuv is the shared one:
# its own allocations must not be wrapped, since it aborts where one fails.
WRAPPED := malloc calloc realloc strdup uv_async_init uv_loop_init uv_tcp_open \
	uv_read_start uv_write uv_try_write uv_poll_init \
	uv_poll_start uv_signal_init uv_signal_start pthread_create \
	accept4 epoll_create1 epoll_ctl
WRAP := $(foreach f,$(WRAPPED),-Wl,--wrap=$(f))
$(BUILD)/tests/fault/%: $(BUILD)/tests/fault/%.o \
		$(BUILD)/tests/fault/wrap.o $(BUILD)/parts.a 
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) $(WRAP) -o $@ $^ -lcmocka -luv $(JANSSON) -ldl

$(BUILD)/tests/progs/%: $(BUILD)/tests/progs/%.o $(BUILD)/libflaunch.a
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/../..' -o $@ $^ $(UV) -ldl

# A library whose name begins like MPI's, and a program that needs it.
$(BUILD)/tests/progs/lib/libmpi_like.so: tests/progs/lib/libmpi_like.c
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) -shared -fPIC -Wl,-soname,libmpi_like.so -o $@ $<

$(BUILD)/tests/progs/mpi_like: $(BUILD)/tests/progs/mpi_like.o \
		$(BUILD)/tests/progs/lib/libmpi_like.so
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/lib' -o $@ $< \
		-L$(BUILD)/tests/progs/lib -lmpi_like

# Libraries that stand in for NVIDIA's: names as those have them.
$(BUILD)/tests/standin/libnccl.so.2: $(BUILD)/tests/standin/nccl.o
$(BUILD)/tests/standin/libcudart.so: $(BUILD)/tests/standin/cudart.o
$(BUILD)/tests/standin/libcuda.so.1: $(BUILD)/tests/standin/cuda.o
$(BUILD)/tests/standin/libspy.so: $(BUILD)/tests/standin/spy.o
$(STANDIN):
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -o $@ $^
$(BUILD)/tests/standin/%.o: WARN := -Wall -Wextra

# The examples that call CUDA, on the stand-ins.
CUDA_TESTS := $(addprefix $(BUILD)/tests/cuda/,$(CUDA_NAMES))
$(BUILD)/tests/cuda/%: $(BUILD)/worker/examples/cuda/%.o $(SO) $(STANDIN)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/../..:$$ORIGIN/../standin' \
		-o $@ $< -L$(BUILD) -lflaunch $(BUILD)/tests/standin/libnccl.so.2 \
		$(BUILD)/tests/standin/libcudart.so

$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $<

$(addprefix $(BUILD)/tests/bench/,coordinator_sim agents store_load \
		store_peer): $(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/parts.a
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(UV) $(JANSSON) -ldl

# Plain builds replay the corpus; `make fuzz` searches, with clang.
$(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/replay.o \
		$(BUILD)/parts.a
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(UV) $(JANSSON) -ldl

.PHONY: tests-built
tests-built: all $(UNIT) $(FAULT) $(PROGS) $(REPLAY) $(STANDIN) $(CUDA_TESTS)

.PHONY: check-built
check-built: tests-built
	python3 tests/run.py --build $(BUILD) $(if $(STRICT),--strict) $(TESTS)

.PHONY: check-asan
check-asan:
	@tests/tools/deps build test
	@$(MAKE) --no-print-directory BUILD=build/asan SAN=1 check-built

FUZZ_SECONDS ?= 10
.PHONY: fuzz
fuzz:
	@tests/tools/deps build test lint
	@tests/tools/deps fuzz
	@set -e; for name in $(FUZZ_NAMES); do \
		$(MAKE) --no-print-directory BUILD=build/fuzz CC=clang \
			OPT=-O1 SAN= SANFLAGS="-fsanitize=address,undefined,fuzzer-no-link" \
			build/fuzz/parts.a build/fuzz/tests/fuzz/$$name.o; \
		clang -fsanitize=address,undefined,fuzzer -pthread \
			-o build/fuzz/$$name build/fuzz/tests/fuzz/$$name.o \
			build/fuzz/parts.a $(UV) $(JANSSON) -ldl; \
		mkdir -p build/fuzz/corpus/$$name; \
		build/fuzz/$$name -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/fuzz/ \
			-print_final_stats=1 \
			build/fuzz/corpus/$$name tests/fuzz/corpus/$$name; \
	done

.PHONY: bench
bench:
	@tests/tools/deps build bench
	@$(MAKE) --no-print-directory all $(BENCH) $(PROGS)
	python3 tests/bench/launch.py --build $(BUILD)
	python3 tests/bench/memory.py --build $(BUILD)
	python3 tests/bench/streams.py --build $(BUILD)
	python3 tests/bench/endings.py --build $(BUILD)
	python3 tests/bench/init.py --build $(BUILD)
	python3 tests/bench/torchrun.py --build $(BUILD)

# Several hosts, made of network namespaces: all that `make check` has of them.
.PHONY: check-nodes
check-nodes:
	@tests/tools/deps build test
	@$(MAKE) --no-print-directory tests-built
	python3 tests/run.py --build $(BUILD) $(if $(STRICT),--strict) \
		e2e/nodes $(shell cd tests && grep -l 'from hosts' e2e/scenarios/*.py \
		| sed 's/\.py//') unit/test_coordinator unit/test_nodes unit/test_agent

# torchrun and flaunch side by side, as a table in Markdown. Rows that need
# PyTorch are left out where TORCH_PYTHON, or python3, has none.
.PHONY: conformance
conformance:
	@tests/tools/deps build test
	@$(MAKE) --no-print-directory all
	python3 tests/interop/torchrun/conformance.py \
		--launcher $(BUILD)/flaunch \
		--python $${TORCH_PYTHON:-$$(command -v python3)}

# Models of the rendezvous in Promela, checked by SPIN.
.PHONY: model
model:
	@tests/tools/deps model
	python3 tests/run.py --build $(BUILD) $(if $(STRICT),--strict) model

# Several nodes; torchrun beside them where TORCH_PYTHON has PyTorch.
.PHONY: bench-nodes
bench-nodes:
	@tests/tools/deps build test bench
	@$(MAKE) --no-print-directory all $(BENCH)
	python3 tests/bench/nodes.py --build $(BUILD)

# The store beside redis, PyTorch's (TORCH_PYTHON) and a bare echo.
.PHONY: bench-store
bench-store:
	@tests/tools/deps build bench bench-store
	@$(MAKE) --no-print-directory all $(BENCH) $(PROGS)
	python3 tests/bench/store.py --build $(BUILD)

# Real PyTorch (TORCH_PYTHON), Open MPI, MPICH, Slurm (as root) and Horovod
# (HOROVOD_PYTHON, which is made where it is not given).
.PHONY: interop
interop:
	@tests/tools/deps build test interop
	@$(MAKE) --no-print-directory tests-built
	@[ -n "$$HOROVOD_PYTHON" ] || tests/tools/deps-horovod $(BUILD)/horovod
	HOROVOD_PYTHON=$${HOROVOD_PYTHON:-$(CURDIR)/$(BUILD)/horovod/bin/python} \
		python3 tests/run.py --build $(BUILD) $(if $(STRICT),--strict) interop

# A million spawns; descriptors and memory must not grow. `make check` does a
# few thousand.
SPAWNS ?= 1000000
.PHONY: soak
soak:
	@tests/tools/deps build test
	@$(MAKE) --no-print-directory tests-built
	FLAUNCH_TEST_SPAWNS=$(SPAWNS) FLAUNCH_TEST_SECONDS=36000 python3 tests/run.py --build $(BUILD) e2e/test_soak

# Both commands of the README in a bare Debian 12 and 13 root; as root.
.PHONY: check-fresh
check-fresh:
	tests/tools/check-fresh

# On a machine with a GPU: what CI cannot try.
.PHONY: check-gpu
check-gpu:
	@tests/tools/deps build test
	@$(MAKE) --no-print-directory tests-built
	python3 tests/run.py --build $(BUILD) e2e/test_gpu

# Lines of the store's pure modules that its tests reach; at least 95 %.
COVERED := $(addprefix build/coverage/tests/,unit/test_common unit/test_store \
	unit/test_store_session unit/test_store_vectors unit/test_store_client \
	fuzz/fuzz_store_session fuzz/fuzz_store_proto fuzz/fuzz_store_reply \
	fuzz/fuzz_store_model)
.PHONY: coverage
coverage:
	@tests/tools/deps build test
	@$(MAKE) --no-print-directory BUILD=build/coverage OPT=-O0 SAN= \
		SANFLAGS=--coverage $(COVERED)
	tests/tools/coverage build/coverage

# Headers and libraries of CUDA and NCCL where the machine has none.
.PHONY: deps-nvidia
deps-nvidia:
	tests/tools/deps-nvidia $(NVIDIA)

# --- how the code looks -------------------------------------------------

C_FILES = $(shell git ls-files '*.c' '*.h' '*.cc')

.PHONY: format
format:
	clang-format -i $(C_FILES)

.PHONY: lint
lint:
	@tests/tools/deps build test lint
	@$(MAKE) --no-print-directory lint-built

.PHONY: lint-built
# cppcheck knows no system header; the lists of queue.h are macros it must see.
# It takes a pointer to a variable that is put into a struct for a use of the
# variable (ctuuninitvar).
lint-built: QUEUE_H := $(firstword $(wildcard /usr/include/*/sys/queue.h \
	/usr/include/sys/queue.h))
lint-built:
	@clang-format --dry-run --Werror $(C_FILES)
	tests/tools/include-rules
	cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 -I. \
		--enable=warning,performance,portability \
		--suppress=missingIncludeSystem --suppress=missingInclude \
		--suppress=ctuuninitvar \
		--include=$(QUEUE_H) common launcher worker
	@printf '%s\n' $(COMMON) $(LAUNCHER) $(WORKER) | grep -v _check.c | \
		xargs -P 2 -n 6 sh -c 'clang-tidy --quiet "$$@" \
			-- -std=gnu11 -I. -D_GNU_SOURCE 2>/dev/null' sh
	$(MAKE) --no-print-directory BUILD=build/clang CC=clang CXX=clang++ \
		WERROR=-Werror all
	$(MAKE) --no-print-directory BUILD=build/gcc CC=gcc WERROR=-Werror all
