# Builds, runs and tests atomredis. `make run` and `make test` need nothing but Go.

GO ?= go
BIN = bin/atomredis
ARGS ?=
# The number of commands that the differential test sends.
N ?= 1000000

# The number of times the kill test kills the server, and the server's sync policy.
ROUNDS ?= 200
SEED ?= 1
FSYNC ?= always

.PHONY: run cluster build test repeat check race fuzz conformance powerloss crash chaos failover bench hostile profile package lint clean

run: build
	./$(BIN) $(ARGS)

# Runs three servers that share a journal, until Ctrl-C; with SHARDS=n a cluster of n shards. DIR holds their data and logs.
DIR ?= cluster-data
SHARDS ?= 1
cluster: build
	./$(BIN) cluster start --dir $(DIR) --shards $(SHARDS)

# Without C: one static file that also needs less memory. The compiler uses cmd/atomredis/default.pgo from make profile.
# Without the pages of gRPC's traces, whose templates make the linker keep unused methods: 16 MB.
build:
	CGO_ENABLED=0 $(GO) build -tags grpcnotrace -o $(BIN) ./cmd/atomredis

# Packages for users, and those for tests, benchmarks and examples, are separate modules (go.work).
ALL = ./... ./bench/... ./conformance/... ./examples/...

# Compiles little: no C, no profile, and no vet, which lint runs. Tests of whole servers mostly wait, so more of them run at once
# than there are processors. The random numbers are the same each time; ATOMREDIS_TEST_SEED chooses others.
# COMPILED are the flags for the compiler, TESTED those of a whole test run; .ci/repeat names the number of tests at once, too.
COMPILED = -pgo=off -vet=off -tags grpcnotrace
TESTED = $(COMPILED) -parallel 4
test:
	CGO_ENABLED=0 $(GO) test $(TESTED) ./...

# Runs the tests of `make test` ROUNDS times beside two busy loops.
repeat: ROUNDS = 30
repeat:
	ROUNDS=$(ROUNDS) COMPILED="$(COMPILED)" .ci/repeat

# Also runs the tests of bench and conformance, which need more libraries, and of the examples.
CHECKED ?= ./bench/... ./conformance/... ./examples/...
check: test
	CGO_ENABLED=0 $(GO) test $(TESTED) $(CHECKED)

# Tests of concurrent code under the race detector; long ones are shortened, and whole servers get many shards by default. The
# command line has little of it, and its large programs take long to link.
# The server's are first because they take longest.
CONCURRENT = ./server/... . ./atom ./atomredistest ./conformance/crash ./conformance/protocols ./doors/... \
	./engine ./engine/listpack ./internal/... ./persist ./persist/journal ./persist/store/lsm ./memory ./pressure ./resp ./scripting
# hashicorp/raft v1.8.0 reads a member's name (updateLastAppended) without the lock under which its address changes. The name stays
# the same, so that is harmless; tests in which members change their roles report it.
UNLOCKED = TestAWitnessJoins|TestALearnerThatStays|TestAVoterBecomesALearner|TestAServerThatJoinsByItselfLearns|TestAServerThatWaits
race:
	ATOMREDIS_TEST_SHARDS=16 $(GO) test -pgo=off -race -short -parallel 4 -timeout 30m -skip '$(UNLOCKED)' $(CONCURRENT)

# Runs each fuzz target for FUZZTIME, a time or a number of inputs such as 1000x.
FUZZTIME ?= 60s
FUZZED = $(sort $(dir $(shell grep -rl '^func Fuzz' --include='*_test.go' .)))
fuzz:
	for package in $(FUZZED); do \
		CGO_ENABLED=0 $(GO) test -c -tags grpcnotrace -fuzz . -o bin/fuzz.test ./$$package || exit 1; \
		for target in $$(bin/fuzz.test -test.list '^Fuzz'); do \
			(cd $$package && $(CURDIR)/bin/fuzz.test -test.run '^$$' -test.fuzz "^$$target$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzminimizetime 1s -test.fuzzcachedir "$$($(GO) env GOCACHE)/fuzz/atomredis/$$package") || exit 1; \
		done; \
	done

# Replays the transcripts against a live Redis and compares N random commands with it.
conformance: build
	./conformance/run.sh $(N)

# Power loss at many file-system calls, an error at each of them in turn, and a thousand damaged data directories.
powerloss:
	ATOMREDIS_FULL_TESTS=1 $(GO) test -count=1 -parallel 32 ./server ./persist -run 'NothingAcknowledged|Damage'

# A group of servers in one process on failing disks and a failing network, with clients whose history is checked. SEEDS runs from SEED on.
SEEDS ?= 200
chaos:
	cd conformance && CHAOS_SEED=$(SEED) CHAOS_SEEDS=$(SEEDS) $(GO) test -timeout 0 -v ./chaos

# A group of three processes in network namespaces. Its leader is killed, stopped and cut off under load. Needs root.
failover: build
	cd conformance && $(GO) run ./failover/cmd -server ../$(BIN) -rounds $(ROUNDS) -seed $(SEED)

# Kills the server repeatedly under load, and checks that no acknowledged change is lost.
crash: build
	$(GO) run ./conformance/crash/cmd -server $(BIN) -rounds $(ROUNDS) -seed $(SEED) -fsync $(FSYNC)

# Compares with redis-server; bench/README.md describes the settings (WORKLOAD, ROUNDS, FULL, SMOKE and others).
bench: build
	./bench/run.sh

# Hostile clients against both servers, and their effect on other clients (CASE=name,name selects); at most ten minutes.
CASE ?=
hostile: build
	$(GO) run ./bench/hostile -case "$(CASE)"

# Measures the profile for the compiler again (cmd/atomredis/default.pgo).
profile: export ATOMREDIS_PROFILE = $(CURDIR)/bench/results/default.pgo
profile:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/profiled ./bench/profile
	rm -f $(ATOMREDIS_PROFILE)
	$(GO) run ./bench/compare -server bin/profiled -name profile -rounds 1 -time 500ms -durability none,everysec
	cp $(ATOMREDIS_PROFILE) cmd/atomredis/default.pgo

# Builds packages and tarballs for all systems in bin/packages; packaging/check.sh installs and starts one of them.
package:
	./packaging/build.sh

# Checks only the types of users' packages for other systems: that takes seconds; compiling for one of them takes minutes.
SYSTEMS = darwin/arm64 windows/amd64 freebsd/amd64 linux/386 linux/arm
lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	$(GO) vet -pgo=off $(ALL)
	$(GO) run -pgo=off ./internal/portable $(SYSTEMS) -- ./...
	$(GO) run -pgo=off honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./... ./examples/...
	@found=$$($(GO) run -pgo=off golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./... 2>&1) || case $$found in \
		*"dial tcp"*) echo "govulncheck: the database of vulnerabilities cannot be reached" ;; \
		*) echo "$$found"; exit 1 ;; \
	esac

clean:
	rm -rf bin
