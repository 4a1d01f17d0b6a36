package feed

import (
	"bytes"
	"fmt"
	"strconv"

	"oda"
)

// A frame holds events as they are sent: a chunk of HTTP/1.1 whose size has always
// eight digits. Changes are turned into frames once for all followers.
const (
	frameHead = len("00000000\r\n")
	frameTail = len("\r\n")
)

// beginFrame returns an empty frame with room for a text of this size.
func beginFrame(size int) []byte { return make([]byte, frameHead, frameHead+size+frameTail) }

// endFrame completes a frame. It returns nil for a frame without text, since an
// empty chunk would end the answer.
func endFrame(frame []byte) []byte {
	if len(frame) == frameHead {
		return nil
	}
	copy(frame, fmt.Appendf(nil, "%08x\r\n", len(frame)-frameHead))
	return append(frame, "\r\n"...)
}

// text returns the text of a frame.
func text(frame []byte) []byte { return frame[frameHead : len(frame)-frameTail] }

// endOfFrames is the end of an answer in chunks.
const endOfFrames = "0\r\n\r\n"

// changesFrame writes changes as events.
func changesFrame(changes []oda.Change) []byte {
	frame := beginFrame(256 * len(changes))
	for i := range changes {
		c := &changes[i]
		frame = strconv.AppendInt(append(frame, "id: "...), int64(c.Position), 10)
		frame = c.AppendJSON(append(frame, "\nevent: change\ndata: "...))
		frame = append(frame, "\n\n"...)
	}
	return endFrame(frame)
}

// recordsFrame writes records as events. A record may have line breaks between the
// values of its JSON. Each line becomes a data field, and the client joins them
// again.
func recordsFrame(records []oda.Record) []byte {
	size := 0
	for i := range records {
		size += len(records[i].Text) + 256
	}
	frame := beginFrame(size)
	var one []byte
	for i := range records {
		frame = strconv.AppendInt(append(frame, "id: "...), records[i].Sequence, 10)
		frame = append(frame, "\nevent: record\n"...)
		one = records[i].AppendJSON(one[:0])
		one = bytes.ReplaceAll(one, []byte("\r\n"), []byte("\n"))
		one = bytes.ReplaceAll(one, []byte("\r"), []byte("\n"))
		for line := range bytes.SplitSeq(one, []byte("\n")) {
			frame = append(append(append(frame, "data: "...), line...), '\n')
		}
		frame = append(frame, '\n')
	}
	return endFrame(frame)
}

// noteFrame writes something other than an event, such as a comment.
func noteFrame(format string, args ...any) []byte {
	return endFrame(fmt.Appendf(beginFrame(64), format, args...))
}
