package sim

import "github.com/enipool/enipool/pkg/cloud/engine"

// Clock tells an account what time it is: the same as an engine's, so that both go by one.
type Clock = engine.Clock

// Wall is the machine's Clock.
type Wall = engine.Wall
