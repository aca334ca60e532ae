package server

func init() {
	const sameAsOf = " RETENTION 0 ENCODING COMPRESSED CHUNK_SIZE 4096 DUPLICATE_POLICY block IGNORE 0 0"
	journalForms = append(journalForms, []struct {
		name  string
		steps []string
		want  []string
	}{
		{"series", []string{"TS.CREATE a LABELS x y", "TS.ADD a 5 1.5", "TS.MADD a 10 2 a 5 3 none 1 1 a x 2 a 20 nan",
			"TS.ALTER a RETENTION 100 LABELS u v", "TS.DEL a 5 5", "TS.DEL a 300 400", "TS.ADD a 500 1"},
			[]string{"TS.ADD a 500 1"}},
		{"series at this time", []string{"TS.CREATE a", "TS.ADD a * 1", "+7", "TS.MADD a * 2 a 1 1 a * 3"},
			[]string{"TS.MADD a 1000000000007 2 a 1 1 a 1000000000007 3"}},
		{"series by directives", []string{"CONFIG SET ts-encoding uncompressed ts-retention-policy 70 ts-duplicate-policy sum " +
			"ts-chunk-size-bytes 64 ts-ignore-max-time-diff 1 ts-ignore-max-val-diff 0.5", "TS.CREATE b", "TS.ADD a 10 1 LABELS l m"},
			[]string{"TS.ADD a 10 1 RETENTION 70 ENCODING UNCOMPRESSED CHUNK_SIZE 64 DUPLICATE_POLICY sum IGNORE 1 0.5 LABELS l m"}},
		{"new series", []string{"TS.CREATE a CHUNK_SIZE 128 ENCODING COMPRESSED"},
			[]string{"TS.CREATE a RETENTION 0 ENCODING COMPRESSED CHUNK_SIZE 128 DUPLICATE_POLICY block IGNORE 0 0"}},
		{"increments of a series", []string{"TS.INCRBY a 0.1 TIMESTAMP 5", "TS.INCRBY a 0.2 TIMESTAMP 5", "TS.INCRBY a inf",
			"TS.INCRBY b 1", "+3", "TS.DECRBY b 0.25"},
			[]string{"TS.DECRBY b 0.25 TIMESTAMP 1000000000003"}},
		{"ignored sample", []string{"TS.CREATE a DUPLICATE_POLICY LAST IGNORE 10 1", "TS.ADD a 1 1", "TS.ADD a 5 1",
			"TS.INCRBY a 0.5 TIMESTAMP 6", "TS.ADD a 50 1"}, []string{"TS.ADD a 50 1"}},
		{"compactions", []string{"TS.CREATE s", "TS.CREATE d", "TS.CREATE e", "TS.CREATERULE s d AGGREGATION avg 10",
			"TS.ADD s 1 1", "TS.CREATERULE s e AGGREGATION twa 10 3", "TS.MADD s 5 2 s 12 3 s 40 1", "TS.ADD s 7 1", "TS.DEL s 1 5",
			"RENAME s t", "RENAME d f", "TS.ADD t 60 2", "DEL e", "TS.ADD t 90 2", "COPY t u", "TS.ADD u 95 1",
			"TS.DELETERULE t f", "TS.ADD t 190 2"}, []string{"TS.ADD t 190 2"}},
		{"compactions by policy", []string{"CONFIG SET ts-compaction-policy avg:1m:1h;max:1s:0:5m", "TS.ADD a 10 1 LABELS l m"},
			[]string{"TS.CREATE a" + sameAsOf + " LABELS l m",
				"TS.CREATE a_AVG_1 RETENTION 3600000 ENCODING COMPRESSED CHUNK_SIZE 4096 DUPLICATE_POLICY block IGNORE 0 0 " +
					"LABELS l m aggregation AVG time_bucket 1",
				"TS.CREATERULE a a_AVG_1 AGGREGATION AVG 1 0",
				"TS.CREATE a_MAX_1000_5" + sameAsOf + " LABELS l m aggregation MAX time_bucket 1000",
				"TS.CREATERULE a a_MAX_1000_5 AGGREGATION MAX 1000 5", "TS.ADD a 10 1"}},
	}...)
}
