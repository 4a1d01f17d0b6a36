package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// event is what a stream tells at once. A comment is an event without data that
// may tell how far the stream is.
type event struct {
	number int64 // 0 if it has none
	data   []byte
}

// events reads Server-Sent Events.
type events struct {
	in   *bufio.Reader
	most int64 // bytes of one event
}

// errNotEvents says that an answer is not a stream of events.
var errNotEvents = errors.New("it is not a stream of events")

func newEvents(in io.Reader, most int64) *events {
	return &events{bufio.NewReaderSize(in, 16<<10), most}
}

// next reads the next event. An event that does not come to its end is none.
func (s *events) next() (event, error) {
	var e event
	size := int64(0)
	for {
		line, err := s.line(s.most - size)
		if err != nil {
			return event{}, err
		}
		size += int64(len(line))
		if len(line) == 0 {
			return e, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id", "": // a comment tells where the stream is
			number, err := strconv.ParseInt(string(value), 10, 64)
			if err == nil {
				e.number = number
			} else if len(name) > 0 {
				return event{}, fmt.Errorf("%w: an event has the id %q", errNotEvents, clip(string(value)))
			}
		case "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
		}
	}
}

// line reads a line without its end.
func (s *events) line(most int64) ([]byte, error) {
	var line []byte
	for {
		part, err := s.in.ReadSlice('\n')
		if int64(len(line)+len(part)) > most {
			return nil, fmt.Errorf("%w: an event is larger than %d bytes, the limit of this client", errNotEvents, s.most)
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}
