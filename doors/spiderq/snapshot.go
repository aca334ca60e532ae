package spiderq

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/atomredis/atomredis/internal/protocols/spiderq/keys"
)

// A snapshot, in the format of the original, has all keys and values, little endian: the number of entries (8 bytes),
// then for each entry the length of its key (4), the key, the length of its value (4), the value.

// snapshotName is the file in the directory that spiderq-snapshot names.
const snapshotName = "snapshot"

// countAdded counts a new entry, and starts a snapshot in the background after spiderq-flush-limit new ones.
func (d *spiderq) countAdded() {
	n := d.added.Add(1)
	if d.Host.Setting("spiderq-snapshot") == "" {
		return
	}
	if limit, err := strconv.ParseInt(d.Host.Setting("spiderq-flush-limit"), 10, 64); err != nil || n < limit {
		return
	}
	if !d.saving.TryLock() {
		return // the next entry tries again
	}
	d.added.Store(0)
	d.background.Go(func() {
		defer d.saving.Unlock()
		if err := d.writeSnapshot(context.Background()); err != nil {
			d.Host.Log().Error("the snapshot for spiderq cannot be written", "error", err.Error())
		}
	})
}

// snapshot writes the snapshot and returns when it is on the disk.
func (d *spiderq) snapshot(ctx context.Context) error {
	d.saving.Lock()
	defer d.saving.Unlock()
	d.added.Store(0)
	return d.writeSnapshot(ctx)
}

// writeSnapshot writes all entries of one instant. saving is held.
func (d *spiderq) writeSnapshot(ctx context.Context) (err error) {
	own, err := d.Host.OwnClient()
	if err != nil {
		return err
	}
	defer own.Close()
	reply, err := own.Do(ctx, "HGETALL", keys.Prefix+"{"+d.Host.Setting("spiderq-queue")+"}")
	if err != nil {
		return err
	}
	entries, err := reply.Slice()
	if err != nil {
		return err
	}
	dir := d.Host.Setting("spiderq-snapshot")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, snapshotName)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	w := bufio.NewWriter(file)
	w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(entries)/2)))
	for _, e := range entries {
		b, err := e.Bytes()
		if err != nil {
			return errors.Join(err, file.Close())
		}
		w.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(b))))
		w.Write(b)
	}
	err = errors.Join(w.Flush(), file.Sync(), file.Close())
	if err != nil {
		return err
	}
	if err = os.Rename(file.Name(), filepath.Join(dir, snapshotName)); err != nil {
		return err
	}
	at, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(at.Sync(), at.Close())
}

// ReadSnapshot calls fn with each entry of a snapshot; key and value are valid during the call. It returns the first
// error of fn, or io.ErrUnexpectedEOF if the snapshot is incomplete.
func ReadSnapshot(r io.Reader, fn func(key, value []byte) error) error {
	in := bufio.NewReader(r)
	var head [8]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return whole(err)
	}
	for range binary.LittleEndian.Uint64(head[:]) {
		key, err := readBytes(in)
		if err != nil {
			return err
		}
		value, err := readBytes(in)
		if err != nil {
			return err
		}
		if err := fn(key, value); err != nil {
			return err
		}
	}
	return nil
}

// readBytes reads a length and that many bytes. Memory grows with the bytes that arrive, not with the announced length.
func readBytes(in io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, whole(err)
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	b, err := io.ReadAll(io.LimitReader(in, n))
	if err == nil && int64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// whole replaces io.EOF by io.ErrUnexpectedEOF.
func whole(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
