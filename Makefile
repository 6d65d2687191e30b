# SPDX-License-Identifier: Apache-2.0
#
# A thin front for Meson. `make demo` and `make test` do all set-up themselves: they say what
# they install, install it once (Debian packages, a local .venv), and are fast afterwards.
#
#   make demo     the main job on data it makes itself
#   make test     all tests: C, command line, fuzz corpora, faults, Python
#   make test-s3  buckets against three S3 servers: SeaweedFS, Ceph, rclone
#   make lint     style, format, module order, warnings as errors with two compilers
#   make bench    benchmarks against other systems where they install
#   make fuzz     libFuzzer over every parser of outside bytes (FUZZ_SECONDS each)
#   make asan     the tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   make tsan     the tests under ThreadSanitizer
#   make arm      the tests of dsp, codec, op and loader for aarch64 under qemu, packs compared
#   make docs     the manual as a site: build-docs/site/index.html
#   make coverage line coverage of src/
#
#   TORCH=0 leaves PyTorch out of .venv; JAX=1 adds JAX; EXTRAS=1 adds Numba, pandas,
#   Polars, DuckDB, pyarrow, ml_dtypes and TensorBoard.

.DEFAULT_GOAL := help
.PHONY: help demo test test-s3 lint bench fuzz asan tsan arm docs coverage setup setup-python clean
TORCH ?= 1
JAX ?= 0
EXTRAS ?= 0
FUZZ_SECONDS ?= 30
export TORCH JAX EXTRAS FUZZ_SECONDS

help:
	@sed -n 's/^#   //p' Makefile

setup:
	@scripts/setup.sh system

setup-python: setup
	@scripts/setup.sh python

demo: setup
	@scripts/build.sh build-release --buildtype=release -Dtests=false
	@scripts/demo.sh build-release

test: setup-python
	@scripts/build.sh build -Dfault=true --buildtype=debugoptimized
	@scripts/test.sh build

test-s3: setup-python
	@scripts/ceph.sh
	@scripts/build.sh build -Dfault=true --buildtype=debugoptimized
	@scripts/test_s3.sh build

asan: setup
	@CC=clang scripts/build.sh build-asan -Dfault=true --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false
	@scripts/sanitize.sh build-asan

tsan: setup
	@CC=clang scripts/build.sh build-tsan -Dfault=true --buildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false
	@scripts/sanitize.sh build-tsan

lint: setup
	@scripts/lint.sh

bench: setup-python
	@scripts/build.sh build-release --buildtype=release
	@scripts/bench.sh build-release

fuzz: setup
	@CC=clang scripts/build.sh build-fuzz -Dfuzz=true --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false
	@scripts/fuzz.sh build-fuzz

arm: setup
	@scripts/build.sh build-release --buildtype=release -Dtests=false
	@scripts/arm.sh build-release

docs: setup-python
	@scripts/docs.sh

coverage: setup
	@scripts/build.sh build-coverage -Dfault=true --buildtype=debug -Db_coverage=true
	@scripts/coverage.sh build-coverage

clean:
	rm -rf build build-* demo-out
