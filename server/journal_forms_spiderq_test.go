package server

func init() {
	journalForms = append(journalForms, []struct {
		name  string
		steps []string
		want  []string
	}{
		{"spiderq", []string{"SPIDERQ.ADD q a 1", "SPIDERQ.ADD q b 2 HEAD", "SPIDERQ.UPDATE q a 3", "SPIDERQ.REMOVE q b",
			"SPIDERQ.LEND q 100", "SPIDERQ.HEARTBEAT q 3 a 200", "SPIDERQ.REPAY q 3 a 4 REWARD", "SPIDERQ.LEND q 50"},
			[]string{"ZREM spiderq:{q}:queue a", "HSET spiderq:{q}:loans a 4", "ZADD spiderq:{q}:lent 1000000000050 a"}},
		{"spiderq time is up", []string{"SPIDERQ.ADD q a 1", "SPIDERQ.LEND q 100", "+100", "SPIDERQ.LEND q 100"}, nil},
		{"spiderq served", []string{"1:SPIDERQ.LEND q 100", "SPIDERQ.ADD q a 1"},
			[]string{"HSET spiderq:{q} a 1", "SET spiderq:{q}:serial 2", "ZADD spiderq:{q}:queue 2 a",
				"ZREM spiderq:{q}:queue a", "HSET spiderq:{q}:loans a 2", "ZADD spiderq:{q}:lent 1000000000100 a"}},
	}...)
}
