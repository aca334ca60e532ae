// Package protocols_test runs the command sequences of the atom and pressure protocols, as their specifications give
// them, through ordinary clients. It needs only the server: pressure's clients are processes of the test binary itself.
package protocols_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
)

// addrVariable names a server to test instead of one in this process.
const addrVariable = "ATOMREDIS_CONFORMANCE_ADDR"

// messagesVariable determines how many messages pass through each pressure queue.
const messagesVariable = "ATOMREDIS_PRESSURE_MESSAGES"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		if err := pressureProcess(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// server returns the address of an empty server that runs as long as the test.
func server(t *testing.T) string {
	addr := os.Getenv(addrVariable)
	if addr == "" {
		db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Config: testConfig()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db.Addr()
	}
	require.NoError(t, client(t, addr).FlushAll(t.Context()).Err())
	return addr
}

func testConfig() map[string]string {
	config := map[string]string{"maxclients": "30000"}
	if shards := os.Getenv("ATOMREDIS_TEST_SHARDS"); shards != "" {
		config["shards"] = shards
	}
	return config
}

func client(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() { c.Close() })
	return c
}

// ctxBackground is for calls that need no context of a test.
var ctxBackground = context.Background()

// setting returns a number from the environment.
func setting(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
