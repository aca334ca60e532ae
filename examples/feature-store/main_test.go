package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
)

// runProgram runs the program until the test ends, with a clock that the test moves. It returns the URL of the customers.
func runProgram(t *testing.T) (*atomredistest.Server, string) {
	s := atomredistest.RunOptions(t, atomredis.Options{Addr: "127.0.0.1:0", Clock: atomredistest.NewClock(time.Now())})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), ln, s.DB, time.Hour) }()
	t.Cleanup(func() { require.NoError(t, <-ended) }) // t.Context has ended by then
	return s, "http://" + ln.Addr().String() + "/customers"
}

func request(t *testing.T, method, url, body string) (status int, answer string) {
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	reply, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return reply.StatusCode, string(text)
}

func put(t *testing.T, customers, id, country, taste string) {
	body := fmt.Sprintf(`{"country":%q,"orders":3,"spent":9.5,"taste":%s}`, country, taste)
	status, answer := request(t, http.MethodPut, customers+"/"+id, body)
	require.Equal(t, http.StatusNoContent, status, answer)
}

func similar(t *testing.T, url string) (ids []string) {
	status, answer := request(t, http.MethodGet, url, "")
	require.Equal(t, http.StatusOK, status, answer)
	var found []neighbour
	require.NoError(t, json.Unmarshal([]byte(answer), &found))
	for _, n := range found {
		ids = append(ids, n.ID)
	}
	return ids
}

func TestFeaturesAreReadBack(t *testing.T) {
	s, customers := runProgram(t)
	put(t, customers, "ada", "uk", "[1,0.5,0,0]")
	status, answer := request(t, http.MethodGet, customers+"/ada", "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"country":"uk","orders":3,"spent":9.5,"taste":[1,0.5,0,0]}`, answer)

	s.FastForward(time.Hour)
	status, _ = request(t, http.MethodGet, customers+"/ada", "")
	require.Equal(t, http.StatusNotFound, status)
}

func TestSimilarCustomersAreFound(t *testing.T) {
	_, customers := runProgram(t)
	put(t, customers, "ada", "uk", "[1,0,0,0]")
	put(t, customers, "bob", "uk", "[0.9,0.4,0,0]")
	put(t, customers, "eve", "fr", "[0.9,0.1,0,0]")
	put(t, customers, "kim", "fr", "[0,0,0,1]")
	require.Equal(t, []string{"eve", "bob", "kim"}, similar(t, customers+"/ada/similar"))
	require.Equal(t, []string{"eve"}, similar(t, customers+"/ada/similar?n=1"))
	require.Equal(t, []string{"eve", "kim"}, similar(t, customers+"/ada/similar?country=fr"))
	require.Empty(t, similar(t, customers+"/ada/similar?country=de"))
	status, _ := request(t, http.MethodGet, customers+"/nobody/similar", "")
	require.Equal(t, http.StatusNotFound, status)
}

func TestBadFeaturesAreRefused(t *testing.T) {
	s, customers := runProgram(t)
	for _, body := range []string{"", `{"orders":"x"}`, `{"taste":[1,2]}`} {
		status, answer := request(t, http.MethodPut, customers+"/ada", body)
		require.Equal(t, http.StatusBadRequest, status, answer)
	}
	s.CheckKeys(t, nil)
}

// A job elsewhere, in any language, counts an order. Here it has a client of Redis.
func TestOtherClientsChangeFeatures(t *testing.T) {
	s, customers := runProgram(t)
	put(t, customers, "ada", "uk", "[1,0,0,0]")
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	require.NoError(t, client.HIncrBy(t.Context(), "customer:ada", "orders", 1).Err())
	found, err := client.FTSearch(t.Context(), "customers", "@orders:[4 4] @country:{uk}").Result()
	require.NoError(t, err)
	require.Equal(t, 1, found.Total)
	_, answer := request(t, http.MethodGet, customers+"/ada", "")
	require.Contains(t, answer, `"orders":4`)
}
