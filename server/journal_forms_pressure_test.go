package server

func init() {
	journalForms = append(journalForms, pressureJournalForms...)
}

const journalBase = "__pressure__:q"

// pressureJournalForms are the forms in which the commands on queues are journalled: the steps that they stand for.
var pressureJournalForms = []struct {
	name  string
	steps []string
	want  []string
}{
	{"pressure.create", []string{"PRESSURE.CREATE q BOUND 2"},
		[]string{"SET " + journalBase + ":bound 2", "LPUSH " + journalBase + ":producer_free 0",
			"LPUSH " + journalBase + ":consumer_free 0", "LPUSH " + journalBase + ":not_full 0"}},
	{"pressure.put", []string{"PRESSURE.CREATE q BOUND 2", "PRESSURE.PUT q x yy CLIENT me"},
		[]string{"SET " + journalBase + ":producer me",
			"LPUSH " + journalBase + " x yy", "INCRBY " + journalBase + ":stats:produced_messages 2",
			"INCRBY " + journalBase + ":stats:produced_bytes 3",
			"RPOP " + journalBase + ":not_full 1"}},
	{"pressure.put that waits", []string{"PRESSURE.CREATE q BOUND 1", "1:PRESSURE.PUT q x y CLIENT me"},
		[]string{"SET " + journalBase + ":producer me",
			"RPOP " + journalBase + ":producer_free 1", "LPUSH " + journalBase + " x",
			"INCRBY " + journalBase + ":stats:produced_messages 1",
			"INCRBY " + journalBase + ":stats:produced_bytes 1", "RPOP " + journalBase + ":not_full 1"}},
	{"pressure.put that waits no longer", []string{"PRESSURE.CREATE q BOUND 1",
		"1:PRESSURE.PUT q x y CLIENT me TIMEOUT 5", "+5", "SET end 1"}, nil},
	{"pressure.get", []string{"PRESSURE.CREATE q BOUND 1", "PRESSURE.PUT q x CLIENT me", "PRESSURE.GET q CLIENT you"},
		[]string{"SET " + journalBase + ":consumer you",
			"RPOP " + journalBase + " 1", "INCRBY " + journalBase + ":stats:consumed_messages 1",
			"INCRBY " + journalBase + ":stats:consumed_bytes 1",
			"LPUSH " + journalBase + ":not_full 0"}},
	{"pressure.get served later", []string{"PRESSURE.CREATE q", "1:PRESSURE.GET q CLIENT you",
		"2:PRESSURE.GET q RESERVE 5", "PRESSURE.PUT q x y z", "+9", "PRESSURE.GET q COUNT 3"}, nil},
	{"pressure jobs", []string{"PRESSURE.CREATE q ATTEMPTS 1", "PRESSURE.PUT q x y z", "PRESSURE.GET q RESERVE 100",
		"PRESSURE.EXTEND q 500 none", "PRESSURE.FAIL q none reason",
		"EVAL return(redis.call('PRESSURE.EXTEND','q',500,redis.call('HKEYS',KEYS[1])[1])) 1 " + journalBase + ":reserved",
		"EVAL return(redis.call('PRESSURE.FAIL','q',redis.call('HKEYS',KEYS[1])[1],'reason')) 1 " + journalBase + ":reserved",
		"+501", "PRESSURE.LEN q", "PRESSURE.RETRY q ALL",
		"PRESSURE.PUT q w DELAY 5", "PRESSURE.PURGE q STATE DELAYED"}, nil},
	{"pressure schedules", []string{"PRESSURE.CREATE q", "PRESSURE.SCHEDULE q s @hourly x", "PRESSURE.SCHEDULE q t @daily y",
		"PRESSURE.UNSCHEDULE q s"}, nil},
	{"pressure.ack", []string{"PRESSURE.CREATE q BOUND 1", "PRESSURE.PUT q x", "PRESSURE.GET q RESERVE 100",
		"PRESSURE.ACK q none",
		"EVAL return(redis.call('PRESSURE.ACK','q',redis.call('HKEYS',KEYS[1])[1])) 1 " +
			journalBase + ":reserved"}, nil},
	{"pressure.return", []string{"PRESSURE.CREATE q BOUND 3", "PRESSURE.PUT q x y z",
		"PRESSURE.GET q COUNT 3 RESERVE 100", "PRESSURE.RETURN q none",
		"EVAL return(redis.call('PRESSURE.RETURN','q',unpack(redis.call('HKEYS',KEYS[1]),2))) 1 " + journalBase +
			":reserved"}, nil},
	{"pressure.close", []string{"PRESSURE.CREATE q", "1:PRESSURE.GET q", "PRESSURE.CLOSE q CLIENT me"}, nil},
	{"pressure.delete", []string{"PRESSURE.CREATE q", "PRESSURE.PUT q x y", "RPOP " + journalBase + ":consumer_free",
		"1:PRESSURE.DELETE q",
		"LPUSH " + journalBase + ":consumer_free 0"}, nil},
}
