# Everything is built into .build/ and needs Go 1.26 or later; what else a target
# needs, scripts/deps.sh installs where it may and names where it may not.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
RELEASE := $(shell git describe --tags --always --dirty 2>/dev/null || echo unreleased)
BUILD := .build
# Inlining in the netlink library saves no time that could be measured, and makes the
# plugin 4 % larger. gRPC's traces, which nobody looks at, would bring along html/template, and with it each
# exported method of each type: 10 MB of the agent.
# lint, the tests and what they build have the same flags as the programs, by the environment: with
# others every package would be compiled once more. Only the race detector needs its own, and cgo.
export CGO_ENABLED := 0
export GOFLAGS := $(GOFLAGS) -trimpath -gcflags=github.com/vishvananda/...=-l -tags=grpcnotrace
GO_BUILD := go build -ldflags "-s -w -X main.release=$(RELEASE)"
FUZZTIME ?= 10s
STEPS ?= 1000000
FAULTS ?= 3
PODS ?= 2
CALLS ?= 60000
# Those that take longest begin first. With more that wait at once than there are cores a plugin
# stands still for longer than agents expect of one.
LONGEST := ./test/e2e ./test/explore ./test/fleet ./pkg/agent ./pkg/operator ./pkg/cloud/aws ./pkg/cloud/bce ./pkg/simulate ./test ./test/cri
# Packages whose tests read files and run programs, or go through states one after the other: nothing of theirs could race.
# make test runs them.
ALONE := github.com/enipool/enipool/(test|test/explore|test/manifests|test/browser|test/kube|test/cri|test/operated|scripts/image|scripts/chart)
# What only root's tests need: nodes with a real containerd, the node's own programs.
ROOT := $(if $(filter 0,$(shell id -u)),root)
ARCHS ?= amd64 arm64

.DEFAULT_GOAL := help
.PHONY: help build tools previous kube test-kube e2e-kube kube-up kube-down conformance bench-kube e2e-cri bench-cri test-cloud image chart release demo test race soak explore lint fuzz keys bench bench-cluster bench-topologies clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build our programs into .build/
	@mkdir -p $(BUILD)
	@$(GO_BUILD) -o $(BUILD)/ ./plugins/...
	@echo "built $(notdir $(wildcard plugins/*)) into $(BUILD)/"

tools: ## build the reference plugins and cnitool from their Go modules
	@scripts/tools.sh $(BUILD)/cni

previous: ## build the previous release from this repository's history into .build/previous, for the tests of upgrades
	@scripts/previous.sh $(BUILD)/previous || [ $$? = 3 ]

demo: build tools ## two nodes, agents, a burst of pods on a simulated VPC; KEEP=1 leaves it up, with a page of each node for a browser
	@scripts/deps.sh demo
	@$(BUILD)/enipoolctl demo --from $(BUILD)/cni --from $(BUILD) $(if $(KEEP),--keep)

test: build tools previous ## all tests
	@scripts/deps.sh test browser $(ROOT)
	@go list $(LONGEST) ./... | scripts/test.sh -timeout 30m

# -short: where an operated agent is killed at each effect, some of them will do to find a race.
race: build tools previous ## all tests that could race, with the race detector
	@scripts/deps.sh test race $(ROOT)
	@go list $(LONGEST) ./... | grep -vxE '$(ALONE)' | CGO_ENABLED=1 scripts/test.sh -race -short -timeout 40m

soak: build ## the agent's random simulation and histories of pods of topologies for STEPS (1000000) each, agents with operators for a tenth of those, histories of real processes for CALLS (60000), the agent killed at each system call of a tick; a failing seed is printed
	go test ./pkg/agent -count=1 -timeout 0 -run NothingIsLost -soak.steps=$(STEPS)
	go test ./pkg/operator/claims -count=1 -timeout 0 -run NoHistoryOfPods -claims.steps=$(STEPS)
	go test ./test/fleet -count=1 -timeout 0 -run NoSchedule -fleet.steps=$$(($(STEPS) / 10))
	@scripts/deps.sh test
	go test ./test/e2e -count=1 -timeout 0 -run 'TheHistory|KilledAtAnySystemCallOfATick' -history.calls=$(CALLS) -kills.all

explore: ## all that can happen to an agent with up to FAULTS (3) faults and PODS (2) pods that come or go: hours from 4 on
	go test ./test/explore -v -count=1 -timeout 0 -run AllThatCanHappen$$ -explore.faults=$(FAULTS) -explore.steps=$(PODS)

kube: ## build etcd and Kubernetes from their Go modules into .build/kube: minutes the first time
	@scripts/kube.sh build
	@go list -deps -test ./... >/dev/null # what a cluster's test builds itself it builds where there is no network: this fetches its modules

test-kube: build tools kube ## tests with a real Kubernetes, which make test leaves out where it is not built
	@scripts/deps.sh test root
	ENIPOOL_KUBE=1 go test -count=1 ./pkg/kube/... ./test/kube/... ./test/manifests

e2e-kube: build tools kube ## enipool installed on a real Kubernetes on a simulated VPC, as root: minutes
	@scripts/deps.sh test root
	ENIPOOL_KUBE=1 ENIPOOL_E2E=1 go test -vet=off -count=1 -timeout 30m -v ./test/cluster

kube-up: build tools kube ## two nodes of a real Kubernetes with enipool on a simulated VPC, kept up to look around in, as root; minutes the first time
	@scripts/deps.sh test root
	@scripts/kube-up.sh up $(BUILD)/up

kube-down: ## end and remove what kube-up keeps up
	@scripts/kube-up.sh down $(BUILD)/up

conformance: build tools kube ## Kubernetes' own specs on the tests' cluster, as root, ten minutes for each variant; writes test/CONFORMANCE.md. CONFORMANCE has more flags, like -variants=nftables
	@scripts/deps.sh test root conformance
	@scripts/kube.sh build-specs
	go run ./test/conformance $(CONFORMANCE)

bench-kube: build tools kube ## pods bound at once on a real Kubernetes, with the watch and without it, six times each in turn
	@scripts/deps.sh test root
	ENIPOOL_KUBE=1 ENIPOOL_E2E=1 go test -count=1 -timeout 30m -v ./test/cluster -run TimeFromBoundToReady -bursts=6

e2e-cri: build tools ## pods by calls of the CRI to a real containerd, as root
	@scripts/deps.sh test root
	ENIPOOL_KUBE=1 go test -count=1 ./test/cri

bench-cri: build tools ## RunPodSandbox with enipool, with ptp+host-local and in the node's network, in turn
	@scripts/deps.sh test root
	ENIPOOL_KUBE=1 go test -run '^$$' -bench RunPodSandbox -benchtime 50x ./test/cri

test-cloud: ## the clouds' contract, faults included, over any endpoint: EC2_ENDPOINT, BCE_ENDPOINT; contract_test.go of each explains
	go test -count=1 -timeout 3h -v -run Contract ./pkg/cloud/aws ./pkg/cloud/bce

image: ## build the container images into .build/enipool-image.tar and .build/enipool-operator-image.tar, for ARCHS (amd64 arm64), with an SBOM beside each; TAG is theirs in place of the commit
	@scripts/image/build.sh $(RELEASE) $(BUILD)/image $(ARCHS)

chart: ## pack the Helm chart into .build/enipool-chart.tgz, of the images that make image builds
	@mkdir -p $(BUILD)
	@go run ./scripts/chart -release $(RELEASE) -tag "$${TAG:-}" -o $(BUILD)/enipool-chart.tgz

release: ## gather in .build/release what is published of a release: programs for ARCHS, images, SBOMs, chart, SHA256SUMS; a tag of git names it
	@scripts/release.sh $(RELEASE) $(BUILD)/release $(ARCHS)

lint: ## gofmt, vet, staticcheck, govulncheck where it can run
	@scripts/lint.sh

fuzz: ## each fuzz target for FUZZTIME (10s)
	@scripts/fuzz.sh $(FUZZTIME)

keys: ## write what is made from the tables of keys: JSON schemas, that of the chart's values too, and the head of agent.yaml
	go test ./pkg/config/agentconf ./pkg/config/operatorconf -count=1 -run 'FollowsTheTable|FollowTheTable' -update
	go test ./test/manifests -count=1 -run TheSchemaOfTheValues -update

bench: build tools ## measure, and write test/bench/RESULTS.md
	@scripts/deps.sh test
	go run ./test/bench

bench-cluster: build ## measure the operator with 5,000 agents on a real API server, and write test/bench/CLUSTER.md: 40 minutes, needs `make kube`
	go run ./test/bench/cluster $(CLUSTER)

bench-topologies: ## measure what pods of topologies wait for and cost, and write test/bench/TOPOLOGIES.md: minutes
	go run ./test/bench/topologies

clean: ## remove .build/
	rm -rf $(BUILD)
