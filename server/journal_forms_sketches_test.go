package server

import (
	"fmt"

	"github.com/atomredis/atomredis/engine/bloom"
	"github.com/atomredis/atomredis/engine/cuckoo"
)

func init() {
	filter := bloom.New(bloom.Options{Rate: 0.5, Capacity: 100, Expansion: 2})
	_, _ = filter.Add([]byte("a"))
	bits, end := filter.Chunk(1)
	cuckooFilter := cuckoo.New(cuckoo.Options{Capacity: 100, BucketSize: 2, Iterations: 20, Expansion: 1})
	journalForms = append(journalForms, []struct {
		name  string
		steps []string
		want  []string
	}{
		{"bloom filter", []string{"BF.RESERVE f 0.01 3", "BF.ADD f a", "BF.MADD f b c d e", "BF.INSERT f ITEMS f g",
			"BF.RESERVE n 0.001 10 NONSCALING", "BF.RESERVE e 0.001 10 EXPANSION 4", "BF.ADD f a", "BF.ADD f z"},
			[]string{"BF.ADD f z"}},
		{"bloom filter by directives", []string{"CONFIG SET bf-initial-size 7 bf-error-rate 0.2 bf-expansion-factor 3",
			"BF.INSERT g CAPACITY 9 ITEMS x", "BF.RESERVE h 0.1 5", "BF.MADD i a b", "BF.ADD f a"},
			[]string{"BF.RESERVE f 0.2 7 EXPANSION 3", "BF.ADD f a"}},
		{"loaded bloom filter", []string{"BF.LOADCHUNK f 1 " + string(filter.Header()), fmt.Sprintf("BF.LOADCHUNK f %d %s", end, bits),
			"BF.ADD f a", "BF.ADD f b"}, nil},
		{"cuckoo filter", []string{"CF.RESERVE f 4 EXPANSION 1", "CF.ADD f a", "CF.ADDNX f b", "CF.ADDNX f b",
			"CF.INSERT f ITEMS a a a a a", "CF.INSERTNX f ITEMS a c", "CF.DEL f a", "CF.DEL f a", "CF.COMPACT f", "CF.ADD f a"}, nil},
		{"cuckoo filter by directives", []string{"CONFIG SET cf-initial-size 7 cf-bucket-size 3 cf-max-iterations 5",
			"CF.INSERT g CAPACITY 9 ITEMS x", "CF.RESERVE h 100", "CF.ADDNX i a", "CF.ADD f a"},
			[]string{"CF.RESERVE f 7 BUCKETSIZE 3 MAXITERATIONS 5 EXPANSION 1", "CF.ADD f a"}},
		{"loaded cuckoo filter", []string{"CF.LOADCHUNK f 1 " + string(cuckooFilter.Header()), "CF.ADD f a"}, nil},
		{"count-min sketch", []string{"CMS.INITBYDIM a 20 3", "CMS.INITBYDIM b 20 3", "CMS.INITBYPROB c 0.1 0.1",
			"CMS.INCRBY a x 1 y 2", "CMS.INCRBY b y 2 z 3000000000", "CMS.INCRBY b z 3000000000",
			"CMS.MERGE b 2 a a WEIGHTS 2 3", "CMS.INITBYDIM d 20 3 CELL_SIZE 1", "CMS.INCRBY d x 200 x 100 y -1 x -7"}, nil},
		{"top-k list", []string{"TOPK.RESERVE t 2 2 2 0.9", "TOPK.ADD t a b c d a b c", "TOPK.INCRBY t a 7 b 30 e 9",
			"TOPK.ADD t d e f g h i", "TOPK.INCRBY t z 40"}, nil},
		{"t-digest", []string{"TDIGEST.CREATE a COMPRESSION 2", "TDIGEST.CREATE b",
			"TDIGEST.ADD a 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24", "TDIGEST.QUANTILE a 0.5",
			"TDIGEST.ADD b 7", "TDIGEST.MERGE c 2 a b", "TDIGEST.MERGE b 1 a", "TDIGEST.RESET a", "TDIGEST.ADD a 1",
			"TDIGEST.MERGE b 1 c COMPRESSION 5 OVERRIDE"}, nil},
	}...)
}
