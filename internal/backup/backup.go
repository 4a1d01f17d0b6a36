// Package backup is the format of a backup of the embedded engine. The same bytes
// are on the wire and in the file.
//
// A backup begins with a line that names the format. Blocks follow: one that
// describes it, then pages of the database, then one that ends it. A page may come
// more than once, because others write while a backup is taken; the last one counts.
// Each block has a checksum over the identity of the backup, the number of the block and
// the block. So a block that is damaged, missing, out of place or from another backup is
// noticed, and so is a backup that was cut off.
//
// The checksum is a GMAC, since processors compute it at the speed of memory, and a
// SHA-256 many times slower where they have no instructions for it. It is not a secret:
// its key is made of the identity.
package backup

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"
)

// Begins is how a backup begins, whatever its format, and magic with this one.
const (
	Begins = "oda backup "
	magic  = Begins + "2\n"
)

// Kinds of blocks.
const (
	header = 'H'
	pages  = 'P'
	end    = 'E'
)

// A block begins with its kind, the number of its first page and the length of its
// content, and ends with its checksum.
const (
	headSize = 1 + 4 + 4
	sumSize  = 16
)

// MaxBlock bounds the content of a block.
const MaxBlock = 1 << 20

// Header says what is backed up.
type Header struct {
	Identity string    `json:"identity"` // random
	Program  string    `json:"program"`  // version of oda
	Began    time.Time `json:"began"`
	PageSize int       `json:"page_size"`
	Pages    int64     `json:"pages"` // when it began; how long the backup will be, roughly
}

// End says what is in the backup.
type End struct {
	Taken    time.Time        `json:"taken"`    // the moment that it shows
	Pages    int64            `json:"pages"`    // of the database
	Schema   int64            `json:"schema"`   // number of its last step
	Position int64            `json:"position"` // where its log of changes ends
	Entities map[string]int64 `json:"entities"` // by collection
	Blocks   int64            `json:"blocks"`   // of pages
}

// Damage says where a backup is damaged, and how.
type Damage struct {
	Byte int64
	What string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("the backup is damaged at byte %d: %s", d.Byte, d.What)
}

// summer computes the checksums of the blocks of a backup.
type summer struct{ cipher.AEAD }

func newSummer(identity string) (summer, error) {
	key := sha256.Sum256([]byte(identity))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return summer{}, err
	}
	mac, err := cipher.NewGCM(block)
	return summer{mac}, err
}

// sum appends the checksum of a block.
func (s summer) sum(to []byte, number int64, block []byte) []byte {
	nonce := make([]byte, s.NonceSize())
	binary.BigEndian.PutUint64(nonce, uint64(number))
	return s.Seal(to, nonce, nil, block)
}

// Set is a set of pages. The zero value is empty.
type Set struct {
	words []uint64
	n     int
}

// Add adds a page.
func (s *Set) Add(page uint32) {
	word, bit := int(page/64), uint64(1)<<(page%64)
	if word >= len(s.words) {
		s.words = append(s.words, make([]uint64, word+1-len(s.words))...)
	}
	if s.words[word]&bit == 0 {
		s.words[word] |= bit
		s.n++
	}
}

// Has reports whether the page is in the set.
func (s *Set) Has(page uint32) bool {
	word := int(page / 64)
	return word < len(s.words) && s.words[word]&(1<<(page%64)) != 0
}

// Len returns the number of pages.
func (s *Set) Len() int { return s.n }

// All yields the pages in order.
func (s *Set) All(yield func(uint32) bool) {
	for i, word := range s.words {
		for ; word != 0; word &= word - 1 {
			if !yield(uint32(i*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}
