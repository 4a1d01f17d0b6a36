package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
)

// pageOf returns a page of 512 bytes.
func pageOf(text string) []byte { return append([]byte(text), make([]byte, 512-len(text))...) }

// written returns a backup of three blocks of pages: 1 to 3, 7, and 2 again.
func written(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{Program: "test", PageSize: 512, Pages: 7})
	if err != nil {
		t.Fatal(err)
	}
	room, err := w.Room(1)
	if err != nil {
		t.Fatal(err)
	}
	w.Fill(copy(room, slices.Concat(pageOf("one"), pageOf("two"), pageOf("three"))))
	err = errors.Join(w.Page(7, pageOf("seven")), w.Page(2, pageOf("two again")), w.End(End{Pages: 7, Position: 42}))
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read reads a backup to its end, and returns what it has.
func read(content []byte) (pages []string, end End, err error) {
	r, err := NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, End{}, err
	}
	for {
		first, content, err := r.Next()
		if errors.Is(err, io.EOF) {
			return pages, r.End(), nil
		}
		if err != nil {
			return nil, End{}, err
		}
		for i := range len(content) / r.Header.PageSize {
			text, _, _ := bytes.Cut(content[i*512:], []byte{0})
			pages = append(pages, fmt.Sprintf("%d %s", int(first)+i, text))
		}
	}
}

func TestABackupIsReadAsItWasWritten(t *testing.T) {
	content := written(t)
	pages, end, err := read(content)
	if want := []string{"1 one", "2 two", "3 three", "7 seven", "2 two again"}; err != nil || !slices.Equal(pages, want) {
		t.Errorf("it has %v, %v", pages, err)
	}
	if end.Position != 42 || end.Pages != 7 || end.Blocks != 3 {
		t.Errorf("it ends with %+v", end)
	}
	var copied bytes.Buffer
	if _, end, err := Copy(&copied, bytes.NewReader(content), func(Header) {}); err != nil || end.Position != 42 || !bytes.Equal(copied.Bytes(), content) {
		t.Errorf("a copy has %d of %d bytes, %+v, %v", copied.Len(), len(content), end, err)
	}
}

// Whatever is missing at its end, and whichever byte is changed, is noticed; the
// place is where it ends, or the block that was changed.
func TestADamagedBackupIsRefusedWithThePlace(t *testing.T) {
	content := written(t)
	for length := 1; length < len(content); length++ {
		_, _, err := read(content[:length])
		if damage, ok := errors.AsType[*Damage](err); !ok || damage.Byte != int64(length) {
			t.Fatalf("the first %d of %d bytes give %v", length, len(content), err)
		}
	}
	for at := range content {
		changed := slices.Clone(content)
		changed[at] ^= 0x10
		_, _, err := read(changed)
		damage, ok := errors.AsType[*Damage](err)
		if at < len(magic) {
			if !errors.Is(err, ErrNone) {
				t.Fatalf("a change of byte %d gives %v", at, err)
			}
		} else if !ok || damage.Byte > int64(len(content)) {
			t.Fatalf("a change of byte %d gives %v", at, err)
		}
	}
	if _, _, err := read(append(slices.Clone(content), 'x')); err == nil {
		t.Error("more after the end is accepted")
	}
}

// Blocks that are whole, but not where they belong, are noticed, too.
func TestABlockInAnotherPlaceIsRefused(t *testing.T) {
	content := written(t)
	const one = headSize + 512 + sumSize // the blocks of pages 7 and 2
	at := bytes.Index(content, []byte("seven")) - headSize
	exchanged := slices.Concat(content[:at], content[at+one:at+2*one], content[at:at+one], content[at+2*one:])
	lost := slices.Concat(content[:at], content[at+one:])
	other := written(t)
	mixed := slices.Clone(content)
	copy(mixed[at:at+one], other[bytes.Index(other, []byte("seven"))-headSize:])
	for name, damaged := range map[string][]byte{"exchanged": exchanged, "lost": lost, "of another backup": mixed} {
		_, _, err := read(damaged)
		if damage, ok := errors.AsType[*Damage](err); !ok || damage.Byte != int64(at) {
			t.Errorf("a block that is %s gives %v, want damage at byte %d", name, err, at)
		}
	}
	for _, other := range []string{"", "SQLite format 3\x00 and more", Begins + "1\nand more", "something else"} {
		if _, _, err := read([]byte(other)); !errors.Is(err, ErrNone) {
			t.Errorf("%q gives %v", other, err)
		}
	}
}
