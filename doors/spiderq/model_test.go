package spiderq_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
)

// model is a spiderq server in plain code, with the behaviour of pq.rs and its database.
type model struct {
	newer  bool
	now    int64
	serial int64
	values map[string]string
	queue  map[string]int64 // priorities
	boosts map[string]int64
	lent   map[string]*loan
	counts [10]uint64 // in the order of the newer version
}

type loan struct {
	lendKey  int64
	deadline int64
}

// The requests, by their tags.
const (
	count = iota + 1
	add
	update
	lend
	repay
	heartbeat
	stats
	_
	lookup
	_
	ping
	remove
)

func (m *model) key(r *rand.Rand) string { return string(rune('a' + r.IntN(8))) }

// random returns a request. It prefers existing loans.
func (m *model) random(r *rand.Rand) []byte {
	k, v := m.key(r), fmt.Sprint(r.IntN(1000))
	lendKey := int64(r.IntN(10))
	if l := m.lent[k]; l != nil && r.IntN(5) > 0 {
		lendKey = l.lendKey
	}
	ms := uint64(r.IntN(5000))
	if r.IntN(50) == 0 {
		ms = 1<<63 + uint64(r.IntN(3))
	}
	text := func(b []byte, s string) []byte {
		return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	switch n := r.IntN(100); {
	case n < 18:
		b := text(text([]byte{add}, k), v)
		if m.newer {
			b = append(b, byte(1+r.IntN(2)))
		}
		return b
	case n < 24:
		return text(text([]byte{update}, k), v)
	case n < 50:
		return append(binary.BigEndian.AppendUint64([]byte{lend}, ms), 2)
	case n < 75:
		b := text(text(binary.BigEndian.AppendUint64([]byte{repay}, uint64(lendKey)), k), v)
		return append(b, byte(1+r.IntN(4)))
	case n < 82:
		return binary.BigEndian.AppendUint64(text(binary.BigEndian.AppendUint64([]byte{heartbeat}, uint64(lendKey)), k), ms)
	case n < 88:
		return text([]byte{lookup}, k)
	case n < 92:
		return []byte{count}
	case n < 94:
		return []byte{stats}
	case n < 96 && m.newer:
		return text([]byte{remove}, k)
	default:
		return []byte{ping}
	}
}

// forward moves the time: loans that are due return to the front.
func (m *model) forward(ms int64) {
	m.now += ms
	m.returnDue()
}

func (m *model) returnDue() {
	for k, l := range m.lent {
		if l.deadline <= m.now {
			delete(m.lent, k)
			m.serial++
			m.queue[k] = 0
		}
	}
}

func (m *model) smallest() (least int64, keys []string) {
	for k, p := range m.queue {
		switch {
		case len(keys) == 0 || p < least:
			least, keys = p, []string{k}
		case p == least:
			keys = append(keys, k)
		}
	}
	return least, keys
}

// check applies a request to the model, and returns an error if the reply differs.
func (m *model) check(request, reply []byte) error {
	m.returnDue() // entries whose deadline is now
	in := request[1:]
	text := func() string {
		n := binary.BigEndian.Uint32(in)
		s := string(in[4 : 4+n])
		in = in[4+n:]
		return s
	}
	number := func() int64 {
		n := binary.BigEndian.Uint64(in)
		in = in[8:]
		return int64(n)
	}
	want := func(b ...byte) error {
		if !slices.Equal(b, reply) {
			return fmt.Errorf("want %x", b)
		}
		return nil
	}
	yesNo := func(ok bool, yes, no byte) error {
		if ok {
			return want(yes)
		}
		return want(no)
	}
	value := func(tag byte, s string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{tag}, uint32(len(s))), s...)
	}
	loanOf := func(k string, lendKey int64) *loan {
		if l := m.lent[k]; l != nil && l.lendKey == lendKey {
			return l
		}
		return nil
	}
	deadline := func(ms int64) int64 { return m.now + max(ms, 0) }
	switch request[0] {
	case ping:
		m.counts[0]++
		return want(0x11)
	case count:
		m.counts[1]++
		return want(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(m.queue)))...)
	case add:
		m.counts[2]++
		k, v := text(), text()
		if _, ok := m.values[k]; ok {
			return want(3)
		}
		m.values[k] = v
		m.serial++
		m.queue[k] = m.serial
		if m.newer && in[0] == 1 {
			m.queue[k] = 0
		}
		delete(m.boosts, k)
		return want(2)
	case update:
		m.counts[3]++
		k, v := text(), text()
		_, ok := m.values[k]
		if ok {
			m.values[k] = v
		}
		return yesNo(ok, 4, 5)
	case lookup:
		m.counts[4]++
		v, ok := m.values[text()]
		if !ok {
			return want(0x0e)
		}
		return want(value(0x0d, v)...)
	case remove:
		m.counts[5]++
		k := text()
		_, ok := m.values[k]
		delete(m.values, k)
		return yesNo(ok, 0x12, 0x13)
	case lend:
		m.counts[6]++
		return m.checkLend(deadline(number()), reply)
	case repay:
		m.counts[7]++
		lendKey, k, v := number(), text(), text()
		if loanOf(k, lendKey) == nil {
			return want(5)
		}
		m.values[k] = v
		m.repay(k, in[0])
		return want(7)
	case heartbeat:
		m.counts[8]++
		lendKey, k := number(), text()
		l := loanOf(k, lendKey)
		if l != nil {
			l.deadline = deadline(number())
		}
		return yesNo(l != nil, 8, 9)
	default:
		m.counts[9]++
		b := []byte{0x0a}
		for i, n := range m.counts {
			if m.newer || i != 0 && i != 5 {
				b = binary.BigEndian.AppendUint64(b, n)
			}
		}
		return want(b...)
	}
}

// checkLend accepts any of the keys with the smallest priority.
func (m *model) checkLend(deadline int64, reply []byte) error {
	for {
		_, keys := m.smallest()
		if len(keys) == 0 {
			if !slices.Equal(reply, []byte{0x10}) {
				return fmt.Errorf("want an empty queue")
			}
			return nil
		}
		for _, k := range keys {
			v, ok := m.values[k]
			want := binary.BigEndian.AppendUint64([]byte{6}, uint64(m.serial))
			want = append(binary.BigEndian.AppendUint32(want, uint32(len(k))), k...)
			want = append(binary.BigEndian.AppendUint32(want, uint32(len(v))), v...)
			if ok && slices.Equal(want, reply) {
				for _, other := range keys { // removed entries before it are skipped
					if _, there := m.values[other]; !there && other < k {
						delete(m.queue, other)
					}
				}
				delete(m.queue, k)
				m.lent[k] = &loan{m.serial, deadline}
				return nil
			}
		}
		skipped := false
		for _, k := range keys {
			if _, ok := m.values[k]; !ok {
				delete(m.queue, k)
				skipped = true
			}
		}
		if !skipped {
			return fmt.Errorf("want one of %q", keys)
		}
	}
}

func (m *model) repay(k string, status byte) {
	const penalty, reward, front, drop = 1, 2, 3, 4
	delete(m.lent, k)
	if status == drop {
		delete(m.boosts, k)
		return
	}
	least, _ := m.smallest()
	region := m.serial + 1 - least
	boost := m.boosts[k]
	switch status {
	case penalty:
		boost = max(boost-1, 0)
	case reward:
		if region>>(boost+1) != 0 {
			boost++
		}
	}
	m.serial++
	if status == front {
		m.queue[k] = 0
		return
	}
	m.boosts[k] = boost
	m.queue[k] = m.serial - (region - region>>boost)
}
