package server

func init() {
	journalForms = append(journalForms, []struct {
		name  string
		steps []string
		want  []string
	}{
		{"array", []string{"ARSET a 5 v w", "ARMSET a 0 x 70000 y", "ARINSERT a c d", "ARSEEK a 18446744073709551614",
			"ARINSERT a last", "ARDEL a 6 8", "ARDELRANGE a 90000 100", "ARSEEK nosuch 1", "ARSEEK a 3"}, nil},
		{"ring of an array", []string{"ARRING r 5 a b c d e f g", "ARRING r 9 h", "ARDEL r 1", "ARRING r 3 i j k l", "ARSET s 4 v",
			"ARDEL s 4", "ARRING r 2 m"}, nil},
		{"increment within bounds", []string{"INCREX n", "INCREX n BYINT 5 EX 10", "INCREX n BYINT 5 EX 100 ENX", "+1000",
			"INCREX n BYFLOAT 0.5 UBOUND 11 SATURATE", "INCREX n BYINT 9 UBOUND 10", "INCREX new EXAT 1",
			"INCREX n BYFLOAT 0.25 PERSIST", "INCREX m BYINT 3 PX 500", "INCREX m EXAT 1"}, []string{"DEL m"}},
		{"limit of a rate", []string{"CL.THROTTLE l 1 1 10", "CL.THROTTLE l 1 1 10 0", "+3000", "CL.THROTTLE l 1 1 10", "CL.THROTTLE l 1 1 10",
			"+17001", "CL.THROTTLE l 2 3 1"}, nil},
		{"many moves", []string{"RPUSH l a b c d e f g", "LMOVEM l m LEFT LEFT COUNT 2 OBO", "LMOVEM l l RIGHT RIGHT EXACTLY 2 OBO",
			"LMOVEM l none LEFT LEFT EXACTLY 100 BULK", "1:BLMOVEM q m LEFT RIGHT 0 EXACTLY 2 BULK", "RPUSH q x", "RPUSH q y z"},
			nil}, // the command that served it is in the same record, if the keys are in one shard
		{"imported hashes", []string{"HIMPORT PREPARE f a b", "HIMPORT SET h f 1 2", "EXPIRE h 100", "HIMPORT SET h f 3 4"},
			[]string{"DEL h", "HSET h a 3 b 4"}},
		{"bits of compressed bitmaps", []string{"SET s text", "CONFIG SET bitmap-default-roaring yes", "SETBIT k 100000 1", "SETBIT s 9 1",
			"BITFIELD f SET u8 3 7", "BITOP OR d k s", "BITOP NOT n nosuch", "CONFIG SET bitmap-default-roaring no", "SETBIT k 7 1",
			"BITOP AND e k s", "SET t text", "CONFIG SET bitmap-default-roaring yes", "BITFIELD t SET u1 0 0"},
			[]string{"BITCONVERT t", "BITFIELD t SET u1 0 0"}},
		{"path hash", []string{"PHSET t a FIELDS 2 f 1 g 2", "PHMSET t ab FIELDS 1 f 3 abc FIELDS 1 f 4", "PHSET t a FNX FIELDS 1 f no",
			"PHSET t a FXX FIELDS 1 f 5", "PHDEL t ab f", "PHDEL t nosuch", "PHDELPREFIX t a"}, nil},
		{"delete if equal", []string{"SET k v", "DELIFEQ k w", "DELIFEQ k v"}, []string{"DEL k"}},
	}...)
}
