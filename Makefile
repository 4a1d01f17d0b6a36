# Every command that a developer or a build machine runs. Type "make" for help.

# The binary is static: no C compiler is needed to build, run, test or lint.
# Only the race detector needs one (target "check").
export CGO_ENABLED := 0

# The version is set below, so Go need not ask git; asking fails in a checkout
# that belongs to another user. Programs and tests are compiled alike, so that each
# package is compiled once.
export GOFLAGS += -buildvcs=false -trimpath

VERSION  := $(shell scripts/version)
TOOL     := go tool -modfile=tools/go.mod
FUZZTIME ?= 30s

.DEFAULT_GOAL := help
.PHONY: help demo run build wheel release release-test setup test test-oda test-others test-python check lint secure proof fuzz linear feed drill bench bench-quick bench-against bench-profile soak clean

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile

demo: build ## Serve a made-up week of observations on 127.0.0.1:8080 from ./oda-demo, and keep recording (LISTEN=HOST:PORT)
	bin/oda demo --serve oda-demo $(if $(LISTEN),--listen $(LISTEN))

run: build ## Build oda and serve on 127.0.0.1:8080 from ./oda-data
	bin/oda serve

build: ## Build bin/oda
	go build -ldflags "-s -w -X main.version=$(VERSION)" -o bin/oda ./cmd/oda

wheel: ## Build the wheel of the Python helper into bin
	@scripts/setup python
	python3 -m pip wheel --quiet --no-deps --wheel-dir bin ./python

# Both tools are built here, so that the release itself may be built without a cache.
release: ## Build all that is shipped into dist: programs, packages, image, chart, wheel, SBOM, checksums
	@scripts/setup python
	go build -modfile=tools/ko/go.mod -o bin/ko github.com/google/ko
	cd release && go build -o ../bin/release .
	bin/release -out dist -ko bin/ko

release-test: build release ## Test what is in dist: run, install, upgrade and remove it, build it twice (long)
	@scripts/setup packages jail curl
	cd release && ODA_BIN=$(CURDIR)/bin/oda ODA_DIST=$(CURDIR)/dist go test -count=1 -timeout 30m -v ./...
	@scripts/reproducible release

setup: ## Install what the tests need (Chromium, PostgreSQL, nginx, Caddy, Prometheus, Python, Node.js), if it is missing
	@scripts/setup browser axe openid curl postgres pgbouncer proxies promtool python science clients packages

test: ## Run the tests ("make check" and "make proof" run more)
	@echo "This takes about 10 minutes on two cores. The first time it also installs what is missing:" \
		"Chromium, PostgreSQL, pgbouncer, nginx, Caddy, Prometheus, Python and Node.js with the packages that the tests use."
	@$(MAKE) --no-print-directory setup build
	@$(MAKE) --no-print-directory --output-sync=line -j3 test-oda test-others test-python

# The longest come first, so that no processor is idle in the end.
LONGEST = ./internal/web ./internal/postgres ./internal/app ./internal/httpapi ./client/recorder

# Much of what the tests do is to wait, for the disk, a browser, a database or a time-out. So
# one package more than there are processors is tested at a time, and each runs more tests at
# a time than Go would.
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
TOGETHER   := -p $(shell expr $(PROCESSORS) + 1) -parallel $(shell expr $(PROCESSORS) \* 2)

# Without what only a debugger needs, and what "make lint" looks at anyway, a quarter less
# time goes into building them. The time-outs are for machines that are busy with something else.
test-oda:
	ODA_BIN=$(CURDIR)/bin/oda go test $(TOGETHER) -vet=off -ldflags '-s -w' -timeout 60m $(LONGEST) ./...

# Tests also wait, for the disk, a browser or a database, so these run at the same time.
test-others:
	cd release && ODA_BIN=$(CURDIR)/bin/oda go test -vet=off -ldflags '-s -w' -timeout 30m .
	cd bench && go test -vet=off -ldflags '-s -w' -timeout 30m ./...

# What Python compiles is kept with the packages, and not in the tree. It is kept even where the
# environment forbids it: else every script of a test compiles the standard library again.
test-python:
	ODA_BIN=$(CURDIR)/bin/oda PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/python/.venv/compiled PYTHONPATH=python/src python/.venv/bin/python -m unittest discover -s python/tests

check: lint secure build ## Before a commit: lint, secure, then the tests, those in Go with the race detector
	@scripts/setup browser axe openid curl postgres pgbouncer proxies promtool python science clients packages compiler
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 go test -race -timeout 60m ./...
	@$(MAKE) --no-print-directory test-others test-python
	cd release && go vet ./chart && go test -timeout 10m ./chart

lint: ## Format, vet, staticcheck, the API description
	@unformatted="$$($(TOOL) gofumpt -l .)" || exit 1; \
	if [ -n "$$unformatted" ]; then \
		echo "Not formatted. Run: $(TOOL) gofumpt -w ." >&2; \
		echo "$$unformatted" >&2; exit 1; \
	fi
	go vet ./... && (cd bench && go vet ./...) && cd release && go vet .
	$(TOOL) staticcheck ./...
	cd bench && go tool -modfile=../tools/go.mod staticcheck ./...
	cd release && go tool -modfile=../tools/go.mod staticcheck .
	@scripts/setup description
	@scripts/check-description

# Files are named by the operator, never by a request (G304); errors of closing
# what was only read are ignored (G104). Reaching into SQLite's memory (G103) is what the
# package vfs is for, and only it may. The rest of the tree is not shipped.
secure: ## Known vulnerabilities, insecure code, and whether two builds are the same
	@scripts/vulnerabilities
	$(TOOL) gosec -quiet -exclude=G103,G104,G304 ./internal/sqlite/vfs
	$(TOOL) gosec -quiet -exclude=G104,G304 -exclude-dir=internal/sqlite/vfs -exclude-dir=internal/test -exclude-dir=internal/demo -exclude-dir=deploy -exclude-dir=api -exclude-dir=bench -exclude-dir=release ./...
	@scripts/reproducible

# Tests that judge how fast something is run one package at a time.
proof: setup linear feed drill release-test ## Long tests: linear, feed, drill, release-test, and all tests at full length: speed, 200 kills, overload, all generators, schemathesis, all benchmarks (an hour)
	@scripts/setup proof
	ODA_PROOF=1 ODA_OVERLOAD=1m go test -count=1 -timeout 60m -p 1 ./...
	cd bench && ODA_PROOF=1 go test -count=1 -timeout 30m ./...

fuzz: ## Run each fuzzer for FUZZTIME (default 30s)
	@scripts/fuzz $(FUZZTIME)

LINEARTIME ?= 5m
linear: setup ## Search for histories that are not linearizable, for LINEARTIME (default 5m) per engine
	ODA_LINEAR=$(LINEARTIME) go test -count=1 -timeout 60m -v -run Linearizable ./internal/test/history

FEEDTIME ?= 2m
feed: setup ## Follow the feed of changes through every fault, for FEEDTIME (default 2m) each
	ODA_FEED=$(FEEDTIME) go test -count=1 -timeout 60m -v -run MissNothing ./internal/test/follow

drill: build ## Kill the leader of a Patroni cluster under load, three times (3 minutes)
	@scripts/setup postgres patroni
	go run ./deploy/drill -oda bin/oda

# The measuring program is built first, so that an interrupt goes to it alone.
BENCH = @scripts/setup postgres && cd bench && go build -o out/bench . && out/bench -version $(VERSION) -only '$(BENCH_ONLY)'

bench: ## Measure everything, and write docs/benchmarks.md (30 minutes, 20 GB; BENCH_ONLY=REGEXP for some of it)
	$(BENCH) $(SOAK)

bench-quick: ## A short run of the benchmarks, into bench/out (under two minutes)
	$(BENCH) -quick

bench-against: ## Measure in turn with the oda of another revision (REV=REVISION, BENCH_ONLY=REGEXP), into bench/out/against
	$(BENCH) -against '$(or $(REV),$(error Say which: make bench-against REV=REVISION))'

PROFILES = $(CURDIR)/docs/benchmarks/profiles
bench-profile: ## Profile the CPU time of oda while measuring (BENCH_ONLY=REGEXP), into docs/benchmarks/profiles
	$(BENCH) -quick -profile $(PROFILES)

SOAKTIME ?= 10m
soak: ## A mixed night on both engines for SOAKTIME (default 10m, or hours): fails if memory, goroutines, files or logs grow
	@$(MAKE) --no-print-directory bench BENCH_ONLY=soak SOAK='-soak $(SOAKTIME)'

clean: ## Remove what was built; the archive in ./oda-data stays
	rm -rf bin dist bench/out
	go clean -testcache
