# Everything a person or a machine does with the repository. `make help` lists it.

GO        ?= go
BIN       ?= bin
TOOLS     := $(GO) tool -modfile=.ci/tools/go.mod
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT    ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
DATE      ?= $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
PKG       := github.com/ecotone-dev/ecotone
LDFLAGS   := -s -w -X $(PKG)/gateway/version.Version=$(VERSION) -X $(PKG)/gateway/version.Commit=$(COMMIT) -X $(PKG)/gateway/version.Date=$(DATE)

# The race detector needs cgo and a C compiler; without one it is left out, and said so.
HAVE_CC   := $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo yes)
RACE_PKGS := ./gateway/audit/... ./gateway/invoke/... ./gateway/keyspace/... ./gateway/policy/... ./gateway/rate/... ./gateway/store/... ./gateway/trie/... ./host/boundary/... ./host/files/... ./host/internal/... ./host/lifetime/... ./host/network/... ./host/share/... ./host/vault/...

.PHONY: help build biomes demo demo-policy demo-guests demo-agent mcp-conformance run test race codes clients lint-api check fmt generate fixtures fuzz bench soak microbench benchbin crash package clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  %-10s %s\n", $$1, $$2}'

build: ## build the static binary into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ecotone ./cmd/ecotone

biomes: ## build the first-party biomes into bin/biomes
	$(GO) run ./biomes/build/cmd -o $(BIN)/biomes

demo: build biomes ## run the main job end to end on loopback, in a temporary directory
	$(GO) run ./cmd/demo -bin $(BIN)/ecotone -biomes $(BIN)/biomes

demo-policy: build biomes ## run the permission plane end to end: ceilings, flow, explain, approval, declassification, revocation
	$(GO) run ./cmd/demo -policy -bin $(BIN)/ecotone -biomes $(BIN)/biomes

demo-guests: build biomes ## run biomes in four languages, and a WASI program and an Extism plug-in as they are, in sandbox and in project
	$(GO) run ./cmd/demo -guests -bin $(BIN)/ecotone -biomes $(BIN)/biomes

demo-agent: build biomes ## run an agent end to end over MCP: it searches, is denied, asks for an approval, and invokes
	$(GO) run ./cmd/demo -agent -bin $(BIN)/ecotone -biomes $(BIN)/biomes

MCP_NPM := $(abspath $(BIN))/mcp
mcp-conformance: ## run MCP's conformance suite and its TypeScript client, installed from npm into bin/, against a real server
	@if ! command -v npm >/dev/null 2>&1; then echo "SKIPPED: this needs npm, and there is none on this machine"; exit 0; fi; \
	mkdir -p $(MCP_NPM) && cp .ci/mcp/package.json .ci/mcp/package-lock.json $(MCP_NPM)/ && \
	npm ci --prefix $(MCP_NPM) --ignore-scripts --no-audit --no-fund --loglevel error && \
	ECOTONE_MCP_NPM=$(MCP_NPM) $(GO) test -count=1 -v -run 'TestMCPConformance|TestMCPNodeClient' ./gateway/servertest

run: build biomes ## leave a development gateway up, with the first-party biomes installed
	$(GO) run ./cmd/demo -stay -bin $(BIN)/ecotone -biomes $(BIN)/biomes -data data

test: ## run every test, then the concurrent packages again under the race detector
	$(GO) test -timeout 20m ./...
	@$(MAKE) --no-print-directory race

race: ## run the concurrent packages under the race detector
ifeq ($(HAVE_CC),yes)
	CGO_ENABLED=1 $(GO) test -race -short $(RACE_PKGS)
else
	@echo "SKIPPED: the race detector needs a C compiler, and there is none on this machine"
endif

# .ci/clients is a Go module of its own, so that generators of clients are none of the product's dependencies.
clients: ## make a Go and a TypeScript client from the API documents and do the main job with them
	cd .ci/clients && $(GO) test -count=1 -timeout 20m .

lint-api: ## lint the API documents (needs npm)
	@command -v npm >/dev/null || { echo "SKIPPED: the linter of the API documents needs npm, and there is none on this machine"; exit 0; }; \
	npm --prefix .ci/clients/ts ci --no-audit --no-fund >/dev/null && cd .ci/clients/ts && npx --no-install redocly lint --config redocly.yaml ../../../docs/openapi-control.json ../../../docs/openapi-data.json

CODES := $(abspath $(BIN))/codes.txt
codes: ## print each code of the catalogue with the test that reaches it over a real server; fails when one has none
	@mkdir -p $(BIN); rm -f $(CODES)
	@ECOTONE_CODES=$(CODES) $(GO) test -count=1 -timeout 30m ./gateway/servertest >$(CODES).log 2>&1 || { tail -n 50 $(CODES).log; test ! -s $(CODES) || grep -E ' none$$' $(CODES); exit 1; }
	@cat $(CODES)

check: ## everything CI checks beside the tests; ends by failing on a dirty tree
	$(GO) vet ./...
	$(TOOLS) staticcheck ./...
	@out=$$($(TOOLS) gofumpt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not gofumpt'd:"; echo "$$out"; exit 1; fi
	$(GO) test -run 'TestArrows' ./cmd/ecotone
	$(GO) run ./abi/docgen -check
	$(GO) run ./testdata/hostile/gen -check
	$(GO) run ./biomes/fixtures -check
	$(GO) mod verify >/dev/null
	$(GO) mod tidy -diff
	@$(MAKE) --no-print-directory check-benchmarks
	@if [ -n "$$(git status --porcelain)" ]; then echo "the tree is dirty:"; git status --short; exit 1; fi

# benchmarks/ is a Go module of its own. Without cgo its tests need no C compiler: wasmtime-go is left out.
check-benchmarks:
	cd benchmarks && CGO_ENABLED=0 $(GO) vet ./...
	cd benchmarks && $(GO) tool -modfile=../.ci/tools/go.mod staticcheck ./...
	cd benchmarks && $(GO) mod verify >/dev/null && $(GO) mod tidy -diff
	cd benchmarks && CGO_ENABLED=0 $(GO) test -timeout 10m ./...

fmt: ## format all Go files
	$(TOOLS) gofumpt -w $$(git ls-files '*.go')

generate: ## rewrite the generated references in docs/
	$(GO) run ./abi/docgen
	$(GO) test ./gateway/contract -run 'TestCommittedDocument' -update
	$(GO) test ./gateway/gate -run 'TestChecksPage' -update

fixtures: biomes ## rebuild the committed modules from their sources, those whose toolchain is there, and the biomes
	$(GO) run ./testdata/hostile/gen
	$(GO) run ./biomes/fixtures

FUZZTIME ?= 20s
fuzz: ## run every fuzz target for FUZZTIME
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p 2>/dev/null | grep '^Fuzz' || true); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; done; done

# benchmarks/ is a Go module of its own, so that the peers it measures are none of the product's
# dependencies. wasmtime-go needs cgo; without a C compiler its rows are skipped, and said so.
BENCH      := $(abspath $(BIN))/benchmarks
ifeq ($(HAVE_CC),yes)
BENCH_FLAGS := -tags wasmtime
BENCH_CGO   := 1
else
BENCH_CGO   := 0
endif

benchbin:
ifneq ($(HAVE_CC),yes)
	@echo "SKIPPED: wasmtime-go needs a C compiler, and there is none on this machine"
endif
	cd benchmarks && CGO_ENABLED=$(BENCH_CGO) $(GO) build $(BENCH_FLAGS) -o $(BENCH) .
	cd benchmarks && $(BENCH) -prepare

bench: benchbin ## measure the hot path beside its peers, and publish it; QUICK=1 for less than a minute
	cd benchmarks && $(BENCH) $(if $(BENCH_OUT),-out $(BENCH_OUT)) $(if $(QUICK),-quick) $(if $(BUDGET),-budget $(BUDGET))
	$(if $(QUICK)$(BENCH_OUT),,cd benchmarks && $(BENCH) -publish)

SOAK ?= 10m
soak: benchbin ## mixed good and hostile load for SOAK, then see that nothing has grown
	cd benchmarks && $(BENCH) -soak $(SOAK)

microbench: ## run the in-package benchmarks of the parts, one package at a time
	$(GO) test -p 1 -run '^$$' -bench . -benchmem $$(grep -rl '^func Benchmark' --include='*_test.go' abi gateway host | xargs -n1 dirname | sort -u | sed 's|^|./|')

crash: ## kill the server 50 times under load and look at what is left
	ECOTONE_CRASH_ROUNDS=50 $(GO) test -count=1 -timeout 30m -run TestKill -v ./gateway/crashtest

package: ## build binaries, packages, SBOMs and checksums into dist/; says what was left out for want of a tool
	VERSION='$(VERSION)' COMMIT='$(COMMIT)' DATE='$(DATE)' GO='$(GO)' .ci/package/build

clean: ## remove what was built
	rm -rf $(BIN) dist
