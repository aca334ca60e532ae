package server

func init() {
	journalForms = append(journalForms, []struct {
		name  string
		steps []string
		want  []string
	}{
		{"vectors", []string{"VADD v VALUES 3 1 0 0 a", `VADD v VALUES 3 1 2 0.5 b SETATTR {"x":1} EF 10`, "VADD v VALUES 3 1 1 1 a CAS",
			"VREM v none", "VSETATTR v none x", `VSETATTR v a {"y":2}`, "VREM v b"}, []string{"VREM v b"}},
		{"vectors of bits", []string{"VADD v VALUES 2 1 -1 a BIN M 4", "VADD v VALUES 2 1 1 b BIN M 4", "VADD v VALUES 2 -1 0 a M 4 BIN"},
			[]string{"VADD v VALUES 2 -1 0 a M 4 BIN"}},
		{"vectors that are projected", []string{"VADD v REDUCE 2 VALUES 4 1 2 3 4 a NOQUANT", "VADD v REDUCE 2 VALUES 4 4 3 2 1 b NOQUANT",
			"COPY v w", "VADD w REDUCE 2 VALUES 4 4 3 2 2 c NOQUANT"}, []string{"VADD w REDUCE 2 VALUES 4 4 3 2 2 c NOQUANT"}},
		{"the last vector", []string{"VADD v VALUES 2 1 0 a", "VREM v a"}, []string{"VREM v a"}},
	}...)
}
