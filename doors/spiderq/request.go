package spiderq

import "encoding/binary"

// The tags of requests.
const (
	tagCount     = 0x01
	tagAdd       = 0x02
	tagUpdate    = 0x03
	tagLend      = 0x04
	tagRepay     = 0x05
	tagHeartbeat = 0x06
	tagStats     = 0x07
	tagTerminate = 0x08
	tagLookup    = 0x09
	tagFlush     = 0x0a
	tagPing      = 0x0b
	tagRemove    = 0x0c
)

// The tags of replies.
const (
	tagCounted       = 0x01
	tagAdded         = 0x02
	tagKept          = 0x03
	tagUpdated       = 0x04
	tagNotFound      = 0x05
	tagLent          = 0x06
	tagRepaid        = 0x07
	tagHeartbeaten   = 0x08
	tagSkipped       = 0x09
	tagStatsGot      = 0x0a
	tagError         = 0x0b
	tagTerminated    = 0x0c
	tagValueFound    = 0x0d
	tagValueNotFound = 0x0e
	tagFlushed       = 0x0f
	tagQueueEmpty    = 0x10
	tagPong          = 0x11
	tagRemoved       = 0x12
	tagNotRemoved    = 0x13
)

// version is a version of the protocol.
type version uint8

const (
	version12 version = iota // the version of the specification
	version14                // Add says where, Remove, more counters
)

// request is a decoded request. key and value refer to the frame.
type request struct {
	tag        byte
	key, value []byte
	lendKey    uint64
	timeout    uint64 // ms
	poll, head bool
	status     byte
}

// statuses has the words of SPIDERQ.REPAY for the statuses, from 1 on.
var statuses = [...]string{1: "PENALTY", 2: "REWARD", 3: "FRONT", 4: "DROP"}

// parseRequest reads a frame. It ignores trailing bytes. refusal is the error reply for a malformed request.
func parseRequest(frame []byte, v version) (r request, refusal []byte) {
	p := parser{rest: frame}
	r.tag = p.byte(1)
	switch r.tag {
	case tagCount, tagStats, tagTerminate, tagFlush, tagPing:
	case tagAdd:
		r.key = p.bytes(3, 4)
		r.value = p.bytes(5, 6)
		if v == version14 {
			r.head = p.choice(53, 54, 2) == 1
		}
	case tagUpdate:
		r.key = p.bytes(39, 40)
		r.value = p.bytes(41, 42)
	case tagLookup:
		r.key = p.bytes(47, 48)
	case tagLend:
		r.timeout = p.uint64(7)
		r.poll = p.choice(51, 52, 2) == 2
	case tagRepay:
		r.lendKey = p.uint64(8)
		r.key = p.bytes(9, 10)
		r.value = p.bytes(11, 12)
		r.status = p.choice(13, 14, 4)
	case tagHeartbeat:
		r.lendKey = p.uint64(43)
		r.key = p.bytes(44, 45)
		r.timeout = p.uint64(46)
	default:
		if r.tag == tagRemove && v == version14 {
			r.key = p.bytes(57, 58)
		} else if p.refusal == nil {
			p.refusal = []byte{tagError, 2, r.tag}
		}
	}
	return r, p.refusal
}

// parser takes fields from a frame. After the first missing or bad field it returns zeros.
type parser struct {
	rest    []byte
	refusal []byte
}

// take returns the next n bytes; if there are fewer, it returns nil and sets the error with the number missing.
func (p *parser) take(n uint32, missing byte) []byte {
	if p.refusal != nil {
		return nil
	}
	if uint64(n) > uint64(len(p.rest)) {
		p.refusal = binary.BigEndian.AppendUint32([]byte{tagError, missing}, n)
		p.refusal = binary.BigEndian.AppendUint32(p.refusal, uint32(len(p.rest)))
		return nil
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) byte(missing byte) byte {
	if b := p.take(1, missing); b != nil {
		return b[0]
	}
	return 0
}

func (p *parser) uint64(missing byte) uint64 {
	if b := p.take(8, missing); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// bytes reads a length and that many bytes.
func (p *parser) bytes(missingLen, missing byte) []byte {
	b := p.take(4, missingLen)
	if b == nil {
		return nil
	}
	return p.take(binary.BigEndian.Uint32(b), missing)
}

// choice reads a byte from 1 to most.
func (p *parser) choice(missing, bad, most byte) byte {
	b := p.byte(missing)
	if p.refusal == nil && (b < 1 || b > most) {
		p.refusal = []byte{tagError, bad, b}
	}
	return b
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(b))), b...)
}
