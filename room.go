package oda

import "context"

// LargeText is the size from which the text of a document or a record is large. An engine
// asks for room before it reads one, and meanwhile holds nothing in the database.
const LargeText = 64 << 10

// Room is the memory that a request may take for large texts.
type Room interface {
	// Take waits until there is room for so many bytes more.
	Take(ctx context.Context, bytes int64) error
	// Give gives some back. What is not given back is kept until the request ends.
	Give(bytes int64)
	// Keep gives back all but so many bytes, or takes what is missing.
	Keep(ctx context.Context, bytes int64) error
}

// RoomKey is the key of the Room in the context of a request.
type RoomKey struct{}

// WithRoom returns a context with a room, or with none if it is nil: for work that has
// bounds of its own.
func WithRoom(ctx context.Context, room Room) context.Context {
	return context.WithValue(ctx, RoomKey{}, room)
}

// RoomIn returns the room that a context has. If it has none, there is room for
// everything.
func RoomIn(ctx context.Context) Room {
	if room, _ := ctx.Value(RoomKey{}).(Room); room != nil {
		return room
	}
	return boundless{}
}

// boundless is the room of a caller who needs no bounds, such as a command.
type boundless struct{}

func (boundless) Take(context.Context, int64) error { return nil }
func (boundless) Give(int64)                        {}
func (boundless) Keep(context.Context, int64) error { return nil }
