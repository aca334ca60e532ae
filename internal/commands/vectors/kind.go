package vectors

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/vectors"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/rdb"
)

// This file describes vector sets for commands on keys of any type.

func init() {
	command.RegisterKind(engine.VectorSet, command.Kind{
		Number:   5, // shared by all values of modules
		Encoding: func(*engine.Entry) string { return "raw" },
		Rebuild:  rebuild,
		Digest:   digest,
	})
}

// maxPayload is the size of the largest set that is encoded as a payload: Redis reads no longer arguments.
const maxPayload = 512 << 20

// rebuild encodes a set as a payload, which keeps vectors and links as they are. A larger set is encoded as VADDs of its
// elements in their order, which build the graph again. With a projection it is a payload in any case, because the
// original vectors are not kept.
func rebuild(r *command.Rebuilder, key []byte, e *engine.Entry) {
	s := e.Vectors()
	if s.Projection() != nil || s.MemoryUsage() < maxPayload {
		if payload, err := rdb.Dump(e); err == nil {
			r.Command([]byte("RESTORE"), key, []byte("0"), payload)
		}
		return
	}
	var v []float32
	for id := range uint32(s.Len()) {
		v = s.AppendVector(v[:0], id)
		blob := make([]byte, 0, 4*len(v))
		for _, x := range v {
			blob = binary.LittleEndian.AppendUint32(blob, math.Float32bits(x))
		}
		args := [][]byte{[]byte("VADD"), key, []byte("FP32"), blob, []byte(s.Name(id)), quantWord(s.Quant()),
			[]byte("M"), strconv.AppendInt(nil, int64(s.M()), 10)}
		if a, ok := s.Attributes(id); ok {
			args = append(args, []byte("SETATTR"), []byte(a))
		}
		r.Command(args...)
	}
}

// quantWord returns the word of VADD for a quantisation.
func quantWord(q vectors.Quantisation) []byte {
	return []byte([...]string{"Q8", "BIN", "NOQUANT"}[q])
}

// digest adds the visible content of a set.
func digest(d *command.Digest, e *engine.Entry) {
	s := e.Vectors()
	var b []byte
	s.Range(nil, func(id uint32) bool {
		b, norm, unit := s.AppendRaw(append(b[:0], s.Name(id)...), id)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(norm))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(unit))
		attributes, _ := s.Attributes(id)
		d.Mix(append(b, attributes...))
		return true
	})
}
