# Builds, runs and tests atomredis. `make run` and `make test` need nothing but Go.

GO ?= go
BIN = bin/atomredis
ARGS ?=
# How many commands the differential test sends.
N ?= 1000000

.PHONY: run build test race fuzz conformance bench lint clean

run: build
	./$(BIN) $(ARGS)

build:
	$(GO) build -o $(BIN) ./cmd/atomredis

test:
	$(GO) test ./...

# The same tests under the race detector, with one shard and with many.
race:
	ATOMREDIS_TEST_SHARDS=1 $(GO) test -race ./...
	ATOMREDIS_TEST_SHARDS=16 $(GO) test -race -count=1 ./server/... ./engine ./conformance/... .

# Each fuzz target for FUZZTIME.
FUZZTIME ?= 60s
fuzz:
	$(GO) test ./resp -run '^$$' -fuzz FuzzParser -fuzztime $(FUZZTIME)
	$(GO) test ./server -run '^$$' -fuzz FuzzDispatch -fuzztime $(FUZZTIME)

# Replays the transcripts against a live Redis and compares N random commands with it.
conformance: build
	./conformance/run.sh $(N)

# Throughput beside redis-server, and how operations grow with the size of their collections.
bench: build
	./bench/run.sh

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	$(GO) vet ./...

clean:
	rm -rf bin
