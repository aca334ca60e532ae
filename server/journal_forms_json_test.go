package server

func init() {
	journalForms = append(journalForms, []struct {
		name  string
		steps []string
		want  []string
	}{
		{"json", []string{`JSON.SET d $ {"a":[1,2,3],"b":"x","c":true,"n":{"a":[4]}}`, "JSON.SET d $.m 5 NX",
			"JSON.SET d $..a[0] [1.5,2] FPHA FP16", `JSON.MERGE d $ {"n":{"b":1},"b":null}`,
			`JSON.MSET d $.x 1 e $ {"a":[]} d $.y "y"`, `JSON.ARRAPPEND d $..a 1 "z"`, "JSON.ARRINSERT d $.a 1 7",
			"JSON.ARRTRIM d $..a 1 3", "JSON.ARRPOP d $.a 0", `JSON.STRAPPEND d $.y "z"`, "JSON.TOGGLE d $.c",
			"JSON.CLEAR d $.n", "JSON.DEL d $.x", "JSON.FORGET d $.y", "JSON.DEL e"}, nil},
		{"json numbers", []string{`JSON.SET d $ {"a":1,"b":{"a":2.5},"c":[{"a":"x"}]}`, "JSON.NUMINCRBY d $..a 0.1",
			"JSON.NUMMULTBY d $..a 4", "JSON.SET e $ 2", "JSON.NUMPOWBY e . 10"}, nil},
		{"json powers", []string{"JSON.SET d $ [2,{\"a\":4}]", "JSON.NUMPOWBY d $..* 0.5"},
			[]string{"JSON.SET d $[0] 1.4142135623730951", `JSON.SET d $[1]["a"] 2.0`}},
	}...)
}
