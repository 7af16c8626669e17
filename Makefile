# kontiki: the Kubernetes API on a raft. `make` alone lists the targets.

# One static binary, and one set of cached packages for build, check and test.
export CGO_ENABLED := 0
export KONTIKI_BIN := $(CURDIR)/bin/kontiki
export KUBECTL_BIN := $(CURDIR)/bin/kubectl

TESTFLAGS  ?=
FUZZTIME   ?= 30s
REQUESTS   ?= 10000
DURATION   ?= 30m
BENCHFLAGS ?=
SEED       ?= 1

.DEFAULT_GOAL := help
.PHONY: help build run stop test race check fix fuzz contract chaos bench bench-scale clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

build: ## build bin/kontiki and bin/kubectl (the first time takes minutes)
	@scripts/build.sh

run: build ## start a three-node cluster on loopback and take a tour of it
	@scripts/cluster.sh up
	@scripts/tour.sh

stop: ## stop the cluster; its data stays, `make run` goes on with it
	@scripts/cluster.sh down

test: build ## run all tests (TESTFLAGS=... goes to go test)
	go test $(TESTFLAGS) ./...

race: build ## run all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 GORACE=halt_on_error=1 go test -race $(TESTFLAGS) ./...

check: ## look at the code without running it: gofmt, vet, staticcheck, go.mod, house rules, scripts
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not gofmt'ed (make fix does it):"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go vet -tags faults ./cmd/kontiki
	go tool staticcheck ./...
	go mod tidy -diff
	go test -count=1 ./scripts/tidy
	@if command -v shellcheck >/dev/null; then \
		echo "shellcheck -x scripts/*.sh scripts/*/*.sh .ci/run"; shellcheck -x scripts/*.sh scripts/*/*.sh .ci/run; \
	else echo "shellcheck: skipped, it is not installed"; fi

fix: ## repair what check can repair: gofmt, go.mod
	gofmt -w .
	go mod tidy

fuzz: ## run each fuzz test for FUZZTIME (30s)
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | while IFS=: read -r file func; do \
		echo "$$file: $${func#func }"; \
		go test "$$(dirname "$$file")" -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) || exit 1; \
	done

contract: build ## compare with the real kube-apiserver on etcd, request by request (REQUESTS, SEED; builds it first)
	@scripts/peer/build.sh
	go run ./scripts/contract --requests $(REQUESTS) --seed $(SEED)

chaos: ## break clusters of real servers for DURATION (30m) and check what clients saw (best with root)
	@scripts/chaos.sh --duration $(DURATION)

bench: build ## measure Kontiki and kube-apiserver on etcd, side by side (BENCHFLAGS=... goes to scripts/bench; builds both)
	@scripts/peer/build.sh
	go run ./scripts/bench $(BENCHFLAGS)

bench-scale: build ## measure how Kontiki's cost grows up to 150,000 pods and 10,000 watchers
	go run ./scripts/bench --scale $(BENCHFLAGS)

clean: ## stop the cluster, then remove bin and the cluster's data
	@scripts/cluster.sh down
	rm -rf bin .kontiki
