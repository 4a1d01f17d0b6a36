package cli

import "oda/internal/app"

// database is the address of a database.
type database string

// UnmarshalText checks an address.
func (d *database) UnmarshalText(text []byte) error {
	*d = database(text)
	return app.CheckDatabase(string(text))
}
