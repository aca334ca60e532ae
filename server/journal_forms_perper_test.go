package server

func init() {
	journalForms = append(journalForms, []struct {
		name  string
		steps []string
		want  []string
	}{
		{"perper caches", []string{"PERPER.CREATE c", "PERPER.CREATE c IFMISSING", "PERPER.CREATE d CONFIG x", "PERPER.DESTROY d"},
			[]string{"DEL perper:{d}:config", "HDEL perper:caches 100"}},
		{"perper caches that are not listed", []string{"PERPER.CREATE c UNLISTED", "PERPER.DESTROY c UNLISTED"},
			[]string{"DEL perper:{c}:config"}},
		{"perper values", []string{"PERPER.CREATE c", "PERPER.PUT c a 1", "PERPER.PUTNX c b 2", "PERPER.PUTNX c b 3",
			"PERPER.REPLACE c a 2", "PERPER.REPLACEIF c a 2 3", "PERPER.GETPUT c a 5", "PERPER.GETPUTNX c d 5", "PERPER.GETREPLACE c d 6",
			"PERPER.GETREMOVE c d", "PERPER.REMOVEIF c b 2", "PERPER.REMOVE c a"}, nil},
		{"perper order", []string{"PERPER.CREATE c", "PERPER.MPUT c 2 7 a -9 b", "PERPER.PUT c 7 c", "PERPER.MREMOVE c 1 7"},
			nil},
		{"perper clear", []string{"PERPER.CREATE c", "PERPER.PUT c 7 a", "PERPER.CLEAR c"},
			[]string{"DEL perper:{c}", "DEL perper:{c}:order", "DEL perper:{c}:inserted"}},
		{"perper commit", []string{"PERPER.CREATE c", "PERPER.CREATE d", "PERPER.PUT c a 1", "PERPER.COMMIT REMOVE c a IFMISSING c a",
			"PERPER.COMMIT PUT c b 2 REMOVE c a PUT d 7 x IF c a 1"}, nil},
		{"perper rows", []string{"PERPER.DEFINE t CREATE/**/TABLE/**/t(a/**/INT,b/**/INT,c/**/INT,PRIMARY/**/KEY(a,b))",
			"PERPER.DEFINE t ALTER/**/TABLE/**/t/**/ADD/**/d/**/INT", "PERPER.MODIFY t INSERT/**/INTO/**/t/**/VALUES(1,2,3,4),(5,6,7,8)",
			"PERPER.MODIFY t DELETE/**/FROM/**/t/**/WHERE/**/a=5", "PERPER.MODIFY t UPDATE/**/t/**/SET/**/c=c+1"}, nil},
		{"perper tables", []string{"PERPER.DEFINE t CREATE/**/TABLE/**/t(a/**/INT/**/PRIMARY/**/KEY,b/**/INT)",
			"PERPER.DEFINE t DROP/**/TABLE/**/t"}, []string{"DEL perper:{t}:config", "HDEL perper:caches 116"}},
		{"perper state", []string{"PERPER.STATE READONLY", "PERPER.STATE ACTIVE"}, []string{"DEL perper:state"}},
		{"perper type names", []string{"PERPER.PUTTYPENAME 0 5 java.util.List"}, []string{"HSET perper:typenames 0:5 java.util.List"}},
		{"perper types", []string{"PERPER.PUTTYPE \x05\x00\x00\x00ee" + noFields},
			[]string{"HSET perper:types 5 \x05\x00\x00\x00\x09\x00\x00\x00\x00e" + noFields}},
	}...)
}

// noFields ends the definition of a type: it has no fields, is no enum, and has no schemas.
const noFields = "\x00\x00\x00\x00\x00\x00\x00\x00\x00"
