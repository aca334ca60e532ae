package server

func init() {
	journalForms = append(append(journalForms, atomJournalForms...), atomServeJournalForms...)
}

// atomJournalForms are the forms in which the commands of this group are journalled.
var atomJournalForms = []struct {
	name  string
	steps []string
	want  []string
}{
	{"atom.call", []string{"XADD command:e 1-1 language c version v", "ATOM.CALL e move DATA x FROM me NOWAIT"},
		[]string{"XADD command:e 1000000000000-0 element me cmd move data x"}},
	{"atom.call that waits", []string{"XADD command:e 1-1 language c version v", "1:ATOM.CALL e move",
		"XADD response:atomredis * element e cmd_id 1000000000000-0 err_code 0"},
		[]string{"XADD response:atomredis 1000000000000-0 element e cmd_id 1000000000000-0 err_code 0"}},
	{"atom.call that trims", append(fill("command:e", 1200), "ATOM.CALL e move NOWAIT"),
		[]string{"XADD command:e MAXLEN = 1101 1000000000000-0 element atomredis cmd move data "}},
	{"atom.log", []string{"ATOM.LOG 3 e hello", "ATOM.LOG 7 e hello here"},
		[]string{"XADD log 1000000000000-1 level 7 element e msg hello host here"}},
	{"atom.streamref", []string{"XADD s 1-1 a 1 ser msgpack b 2", "ATOM.STREAMREF s 1-1 reference:e:x 0", "+5",
		"ATOM.STREAMREF s 9 reference:e:nothing 0",
		"ATOM.STREAMREF s 1 reference:e:y 5000"}, nil},
	{"atom.streamref over what is there", []string{"XADD s 1-1 a 1 b 2", "SADD reference:e:x:ser:none:a m",
		"SET reference:e:x:ser:none:b old EX 100", "ATOM.STREAMREF s 1-1 reference:e:x 70"},
		[]string{"SET reference:e:x:ser:none:a 1 PXAT 1000000000070", "SET reference:e:x:ser:none:b 2 PXAT 1000000000070"}},
}

// comingUp has the commands of the journal that make an element e with a group, at the time 1e12 ms.
var comingUp = []string{"XADD command:e 1-1 language c version v",
	"XGROUP CREATE command:e command_consumer_group:e 1-1"}

// atomServeJournalForms are the forms in which ATOM.NEXT and ATOM.RESPOND are journalled.
var atomServeJournalForms = []struct {
	name  string
	steps []string
	want  []string
}{
	{"atom.next served at once", append(comingUp, "XADD command:e 5-1 element me cmd move", "+3",
		"ATOM.NEXT e CONSUMER w"),
		[]string{"XREADGROUP GROUP command_consumer_group:e w COUNT 1 STREAMS command:e >",
			"XADD response:me 1000000000003-0 element e cmd_id 5-1 timeout 1000"}},
	{"atom.next served later", append(comingUp, "1:ATOM.NEXT e ACK 70", "+3", "XADD command:e 5-1 element me cmd move"),
		[]string{"XREADGROUP GROUP command_consumer_group:e e COUNT 1 STREAMS command:e >",
			"XADD response:me 1000000000003-0 element e cmd_id 5-1 timeout 70"}},
	{"atom.next without an acknowledgement", append(comingUp, "XADD command:e 5-1 element me cmd move",
		"ATOM.NEXT e ACK no"),
		[]string{"XREADGROUP GROUP command_consumer_group:e e COUNT 1 STREAMS command:e >"}},
	{"atom.next that trims", append(append(fill("response:me", 1200), comingUp...),
		"XADD command:e 5-1 element me cmd move", "ATOM.NEXT e"),
		[]string{"XREADGROUP GROUP command_consumer_group:e e COUNT 1 STREAMS command:e >",
			"XADD response:me MAXLEN = 1101 1000000000000-0 element e cmd_id 5-1 timeout 1000"}},
	{"atom.next that makes the group", []string{"XADD command:e 1-1 language c version v", "1:ATOM.NEXT e"},
		[]string{"XGROUP CREATE command:e command_consumer_group:e 1-1 MKSTREAM"}},
	{"atom.next that makes the stream", []string{"1:ATOM.NEXT e"},
		[]string{"XGROUP CREATE command:e command_consumer_group:e 0-0 MKSTREAM"}},
	{"atom.next that passes over", append(comingUp, "XADD command:e 5-1 cmd move", "1:ATOM.NEXT e"),
		[]string{"XREADGROUP GROUP command_consumer_group:e e COUNT 1 STREAMS command:e >",
			"XACK command:e command_consumer_group:e 5-1"}},
	{"atom.respond", append(comingUp, "XADD command:e 5-1 element me cmd move", "ATOM.NEXT e", "+3",
		"ATOM.RESPOND e 5-1 me CMD move DATA x"),
		[]string{"XADD response:me 1000000000003-0 data x ser none err_code 0 err_str  cmd_id 5-1 element e cmd move",
			"XACK command:e command_consumer_group:e 5-1"}},
	{"atom.respond to what is not pending", append(comingUp, "ATOM.RESPOND e 5 me ERR 6 what"),
		[]string{"XADD response:me 1000000000000-0 data  ser none err_code 6 err_str what cmd_id 5-0 element e cmd "}},
}
