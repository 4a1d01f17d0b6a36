package cli

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"oda/internal/skuid"
)

// logging has the flags for the log of a server.
type logging struct {
	LogFormat string `default:"text" enum:"text,json" env:"ODA_LOG_FORMAT" placeholder:"FORMAT" help:"Format of the log on stderr: text or json (default ${default})."`
	LogLevel  string `default:"info" enum:"debug,info,warn,error" env:"ODA_LOG_LEVEL" reload:"hangup" placeholder:"LEVEL" help:"Lowest level to log: debug, info, warn or error (default ${default})."`
}

// gathered returns the log of a server and its level, and a function that writes
// what it has gathered, for the end.
func (l logging) gathered(to io.Writer) (log *slog.Logger, level *slog.LevelVar, flush func()) {
	gathered := &lines{to: to}
	log, level = l.logger(gathered)
	return slog.New(gatheredLog{log.Handler(), gathered}), level, gathered.flush
}

// logger returns the log, and its level, which may be changed.
func (l logging) logger(to io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(l.level())
	options := &slog.HandlerOptions{Level: level}
	if l.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(to, options)), level
	}
	return slog.New(slog.NewTextHandler(to, options)), level
}

func (l logging) level() (level slog.Level) {
	if err := level.UnmarshalText([]byte(l.LogLevel)); err != nil {
		panic(err) // the flag allows only valid levels
	}
	return level
}

// byteSize is a number of bytes: 65536, 64KiB, 64MiB or 1GiB.
type byteSize int64

// UnmarshalText parses a size.
func (b *byteSize) UnmarshalText(text []byte) error {
	digits, unit := string(text), int64(1)
	for suffix, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(digits, suffix); ok {
			digits, unit = rest, size
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return fmt.Errorf("%q is not a size; write it as 65536, 64KiB, 64MiB or 1GiB", text)
	}
	*b = byteSize(n * unit)
	return nil
}

// String returns the size as it is written.
func (b byteSize) String() string {
	for _, unit := range []struct {
		suffix string
		size   byteSize
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if b > 0 && b%unit.size == 0 {
			return strconv.FormatInt(int64(b/unit.size), 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// generator is the generator number for new identifiers.
type generator struct {
	number uint16
	given  bool
}

// UnmarshalText parses a generator number.
func (g *generator) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 16)
	if err != nil || n > skuid.MaxGenerator {
		return fmt.Errorf("%q is not a generator; give a number from 0 to %d", text, skuid.MaxGenerator)
	}
	*g = generator{uint16(n), true}
	return nil
}

// String returns the number, empty if none was given.
func (g generator) String() string {
	if !g.given {
		return ""
	}
	return strconv.Itoa(int(g.number))
}

// orDefault returns the number, or the default if none was given.
func (g generator) orDefault() uint16 {
	if g.given {
		return g.number
	}
	return skuid.DefaultGenerator()
}

// positive returns which values are not positive.
func positive(values map[string]int64) (wrong faults) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] <= 0 {
			wrong = append(wrong, fmt.Errorf("%s must be more than 0", name))
		}
	}
	return wrong
}

// order is the order of a search. That in which the last comes first begins with a
// hyphen, which the parser would take for the beginning of a flag.
type order string

// Decode takes the order from the command line. The parser checks which there are.
func (o *order) Decode(ctx *kong.DecodeContext) error {
	text, err := popText(ctx, func(text string) bool { return slices.Contains(ctx.Value.EnumSlice(), text) })
	*o = order(text)
	return err
}

// popText takes the value of a flag from the command line. It may begin with a hyphen
// if it is meant as a value.
func popText(ctx *kong.DecodeContext, meant func(text string) bool) (text string, err error) {
	if next, ok := ctx.Scan.Peek().Value.(string); ok && meant(next) {
		ctx.Scan.Pop()
		return next, nil
	}
	err = ctx.Scan.PopValueInto("string", &text)
	return text, err
}
