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
	}...)
}
