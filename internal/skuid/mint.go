package skuid

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"oda"
)

// MaxGenerator is the highest generator number.
const MaxGenerator = 1<<generatorBits - 1

// The layout of the number in an identifier. The sign bit of a 64-bit integer
// stays free, so that every language can hold the number.
const (
	generatorBits = 10
	suffixBits    = 11
	suffixes      = 1 << suffixBits

	epoch           = 1767744000000 // 2026-01-07T00:00:00Z in Unix milliseconds.
	lastMillisecond = 1<<(63-generatorBits-suffixBits) - 1
)

const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

var (
	errStopped = errors.New("the generator has been closed")
	errClock   = errors.New("the clock is beyond the last time that an identifier can hold")
)

// Generator mints identifiers. It is safe for concurrent use, and never returns
// the same number twice, not even for different types. A process needs only one
// Generator per generator number.
//
// A Generator never waits for the clock. If the clock was set back it continues
// with the last millisecond it used; if all 2048 random parts of a
// millisecond are used it steps to the next one. Its time may thus run ahead of
// the clock until the clock has caught up: the time in an identifier is a hint,
// its uniqueness is a promise.
type Generator struct {
	number uint64
	clock  func() time.Time
	state  *State // if nil, identifiers may repeat after a restart

	mu      sync.Mutex
	stopped bool
	at      int64 // the millisecond being used, counted from epoch
	left    int   // number of free suffixes
	used    [suffixes / 64]uint64
}

// NewGenerator returns a generator with this number, which is at most
// MaxGenerator. Generators that run at the same time need different numbers.
func NewGenerator(number uint16) (*Generator, error) {
	if number > MaxGenerator {
		return nil, fmt.Errorf("generator number %d: give a number from 0 to %d", number, MaxGenerator)
	}
	return &Generator{number: uint64(number), clock: time.Now, at: -1}, nil
}

// keep makes identifiers unique across restarts. The generator owns the state from
// then on: Close closes it.
func (g *Generator) keep(s *State) {
	g.state, g.at = s, s.until // all reserved time counts as used
}

// DefaultGenerator returns a generator number for a process without a
// configured one: a hash of the host name and the process id. Two processes get
// the same one with a chance of 1 in 1024, so if several mint for the same
// archive, give each its own number.
func DefaultGenerator() uint16 {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return generatorFor(host, os.Getpid())
}

func generatorFor(host string, pid int) uint16 {
	h := fnv.New32a()
	h.Write([]byte(host + "/" + strconv.Itoa(pid)))
	sum := h.Sum32()
	return uint16((sum ^ sum>>generatorBits ^ sum>>(2*generatorBits)) & MaxGenerator)
}

// Number returns the generator number.
func (g *Generator) Number() uint16 { return uint16(g.number) }

// Mint returns a new identifier for an entity of this kind. It fails, with an
// oda.Error of the code IdentifierService, only if the generator is closed, if
// its state cannot be written, or in the year 2165.
func (g *Generator) Mint(_ context.Context, kind oda.Kind) (string, error) {
	id, err := g.Next(kind.Prefix())
	if err != nil {
		return "", oda.Errorf(oda.IdentifierService,
			"The built-in identifier service has no identifier available; nothing was stored. Try again; if this persists, tell the operator.").Because(err)
	}
	return id, nil
}

// Next returns a new identifier that begins with prefix and a hyphen. It fails
// as Mint does, with a plain error.
func (g *Generator) Next(prefix string) (string, error) {
	n, err := g.next()
	if err != nil {
		return "", fmt.Errorf("minting an identifier: %w", err)
	}
	return prefix + "-" + encode(n), nil
}

// Close ends minting. If there is a state, Close saves how far the generator
// got, and releases it. It may be called more than once.
func (g *Generator) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return nil
	}
	g.stopped = true
	if g.state == nil {
		return nil
	}
	return g.state.close(g.at)
}

// next returns a number that this generator has not used before.
func (g *Generator) next() (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return 0, errStopped
	}
	at := max(g.at, g.clock().UnixMilli()-epoch, 0)
	if at == g.at && g.left == 0 {
		at++
	}
	if at > lastMillisecond {
		return 0, errClock
	}
	if g.state != nil {
		if err := g.state.cover(at); err != nil {
			return 0, err
		}
	}
	if at != g.at {
		g.at, g.left = at, suffixes
		clear(g.used[:])
	}
	suffix := g.take(rand.Uint64N(suffixes)) // #nosec G404 -- an identifier is no secret
	return uint64(at)<<(generatorBits+suffixBits) | g.number<<suffixBits | suffix, nil
}

// take marks the first free suffix from wish on as used, wrapping around at the
// end. At least one must be free. It looks at each word of the set at most
// twice.
func (g *Generator) take(wish uint64) uint64 {
	word := wish / 64
	free := ^g.used[word] &^ (1<<(wish%64) - 1)
	for free == 0 {
		word = (word + 1) % uint64(len(g.used))
		free = ^g.used[word]
	}
	bit := uint64(bits.TrailingZeros64(free))
	g.used[word] |= 1 << bit
	g.left--
	return word*64 + bit
}

// encode formats n in Crockford's base 32, without leading zeros.
func encode(n uint64) string {
	var text [13]byte
	i := len(text)
	for {
		i--
		text[i] = crockford[n%32]
		if n /= 32; n == 0 {
			return string(text[i:])
		}
	}
}
