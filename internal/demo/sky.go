package demo

// place is somewhere to point a telescope at.
type place struct{ name, ra, dec string }

// Sources that both telescopes can see, and some to calibrate on.
var (
	sources = []place{
		{"47 Tucanae", "00:24:05.67", "-72:04:52.6"},
		{"NGC 253", "00:47:33.12", "-25:17:17.6"},
		{"Small Magellanic Cloud", "00:52:38.0", "-72:48:01"},
		{"Fornax A", "03:22:41.79", "-37:12:29.5"},
		{"Pictor A", "05:19:49.72", "-45:46:43.9"},
		{"Large Magellanic Cloud", "05:23:34.6", "-69:45:22"},
		{"Crab Nebula", "05:34:30.9", "+22:00:53"},
		{"Vela pulsar", "08:35:20.61", "-45:10:34.9"},
		{"Hydra A", "09:18:05.65", "-12:05:43.9"},
		{"Centaurus A", "13:25:27.62", "-43:01:08.8"},
		{"Circinus galaxy", "14:13:09.95", "-65:20:21.2"},
		{"Sagittarius A*", "17:45:40.04", "-29:00:28.1"},
		{"Abell 3667", "20:12:33.7", "-56:50:26"},
		{"NGC 6744", "19:09:46.1", "-63:51:27"},
		{"PSR J0437-4715", "04:37:15.90", "-47:15:09.1"},
		{"SN 1987A", "05:35:28.02", "-69:16:11.1"},
	}
	calibrators = []place{
		{"PKS 1934-638", "19:39:25.03", "-63:42:45.6"},
		{"PKS 0408-65", "04:08:20.38", "-65:45:09.1"},
		{"3C 286", "13:31:08.29", "+30:30:33.0"},
		{"Hercules A", "16:51:08.15", "+04:59:33.3"},
	}
)

func (p place) target(id string) target {
	return target{
		ID: id, Name: p.name, Pointing: "single point",
		Coordinate: coordinate{Kind: "icrs", RA: p.ra, Dec: p.dec, Epoch: 2000},
	}
}
