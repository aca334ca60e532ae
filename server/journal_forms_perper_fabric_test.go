package server

func init() {
	journalForms = append(journalForms, []struct {
		name  string
		steps []string
		want  []string
	}{
		{"perper executions", []string{"PERPER.CALL a i d ID x PARAMETERS 1", "PERPER.CALL a i d", "PERPER.FINISH x RESULTS 2"}, nil},
		{"perper cancel", []string{"PERPER.CALL a i d ID x", "PERPER.CANCEL x"},
			[]string{"HDEL perper:{executions} \x09\x01\x00\x00\x00x"}},
		{"perper locks", []string{"PERPER.CALL a i d ID x", "PERPER.NEXT g a", "PERPER.RELEASE g", "PERPER.RESERVE g x", "PERPER.CANCEL x"}, nil},
		{"perper listeners", []string{"PERPER.LISTEN s l 5", "PERPER.LISTEN s l"}, nil},
	}...)
}
