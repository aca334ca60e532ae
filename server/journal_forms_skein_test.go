package server

func init() {
	journalForms = append(journalForms, []struct {
		name  string
		steps []string
		want  []string
	}{
		{"skein put", []string{"SKEIN.CONTAINER SERVICE a s 1", "SKEIN.PUT a k VALUE 1 OWNER s_0", "SKEIN.PUT a k VALUE 2 KEEPOWNER",
			"SKEIN.PUT a \U0001f600 VALUE 1 OWNER s_0", "SKEIN.PUT a k VALUE 3"},
			[]string{"HSET skein:{a} k 3", "ZREM skein:{a}:owned s_0\x00k", "HDEL skein:{a}:owners k"}},
		{"skein del", []string{"SKEIN.PUT a k VALUE 1", "SKEIN.PUT a l VALUE 2", "SKEIN.PUT a m VALUE 3", "SKEIN.DEL a k m"},
			[]string{"HDEL skein:{a} k l", "ZREM skein:{a}:index k l"}},
		{"skein txn", []string{"SKEIN.PUT a k VALUE 1", "SKEIN.TXN a IF VALUE k = 1 THEN PUT l VALUE 2 DEL k l RANGE a z"},
			[]string{"ZADD skein:{a}:index 0 l", "HSET skein:{a} l 2", "HDEL skein:{a} k", "ZREM skein:{a}:index k"}},
		{"skein containers", []string{"SKEIN.CONTAINER SERVICE a s 2", "SKEIN.CONTAINER ADD a s", "SKEIN.CONTAINER START a s_2",
			"SKEIN.CONTAINER SCALE a s COUNT 5", "SKEIN.CONTAINER RUN a s TTL 100", "SKEIN.CONTAINER RENEW a s_3 TTL 200",
			"SKEIN.PUT a k VALUE 1 OWNER s_1", "SKEIN.PUT a l VALUE 1 OWNER s_1", "SKEIN.CONTAINER KILL a s_1",
			"SKEIN.CONTAINER END a s_2 FAILED", "SKEIN.FINISH a KILLED done"}, nil},
		{"skein end", []string{"SKEIN.CONTAINER SERVICE a s 1", "SKEIN.PUT a k VALUE 1 OWNER s_0", "SKEIN.CONTAINER END a s_0"},
			[]string{"HSET skein:{a}:containers s_0 SUCCEEDED 1000000000000 1000000000000 - Completed successfully.",
				"HDEL skein:{a} k", "ZREM skein:{a}:index k", "HDEL skein:{a}:owners k", "ZREM skein:{a}:owned s_0\x00k"}},
		{"skein lease", []string{"SKEIN.CONTAINER RUN a s TTL 100", "SKEIN.PUT a k VALUE 1 OWNER s_0", "+100", "SKEIN.PUT a l VALUE 1"},
			nil},
		{"skein session", []string{"1:SKEIN.CONTAINER RUN a s SESSION"},
			[]string{"HSET skein:{a}:services s 1",
				"HSET skein:{a}:containers s_0 RUNNING 1000000000000 0 session ", "ZADD skein:{a}:leases 9007199254740992 s_0"}},
	}...)
}
