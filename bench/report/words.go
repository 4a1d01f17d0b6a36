package report

// closing ends every page: how to repeat it, and what the words mean.
const closing = `<a id="repeat"></a>

## How to repeat it

` + "```sh\nmake bench         # everything; at most an hour and 20 GB of disk\nmake bench-quick   # under two minutes; shows that it works, not how fast it is\n```" + `

Both build and start what they need, end it again, and write this page, its plots and
[benchmarks/results.json](benchmarks/results.json), which has every sample of every round.
Measure on a machine that does nothing else: other work shows as a wide spread.

<a id="words"></a>

## What the words mean

- **Bare**: a server that reads the same requests and writes the same answers, and stores
  nothing. It is the limit of HTTP on this machine.
- **Arm, round, interleaved**: what is compared are arms. Each is warmed up; then they are
  measured in turn, A B C A B C. One turn is a round. Whatever else the machine does meets
  all arms alike.
- **Median and spread**: ` + "`0.83 (0.79–0.88)`" + ` is the median of the rounds, then the smallest and
  the largest. A whisker in a plot is the same. Where the spreads of two arms overlap, this
  run does not tell which is better.
- **Ratio**: the quotient of two arms in the same round; then the median over the rounds.
- **p50, p99, p99.9**: half of the operations were at least as quick as p50; one in a hundred
  was slower than p99, one in a thousand slower than p99.9.
- **Closed loop**: every connection sends its next request when it has the answer to the last.
  It shows how much a server can do. It does not show how long people wait: a server that
  stalls is also sent less.
- **Open loop**: requests are sent at a fixed rate, whatever the answers do, as many
  independent callers would. It shows how long people wait at that rate.
- **Coordinated omission**: the mistake of timing a request from when it was sent, although it
  was due earlier and had to wait for a stalled server; the worst times vanish. Here a request
  of an open loop is timed from the moment at which it was due.
- **Durable**: on the disk, and not only in memory, before the answer is sent.
`
