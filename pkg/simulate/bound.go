package simulate

// Served is how long it took, in a load whose pods come at once, until each of them had its
// address, and how long that takes at least by the cloud's rates.
type Served struct {
	All     bool    `json:"all"` // if not, Reached is the length of the load
	Reached Seconds `json:"reached"`
	Bound   Seconds `json:"bound"` // when the requests that are needed have passed, at the soonest
	By      string  `json:"by"`    // the kind of request that passes last, "" if all calls together take longer

	Needed  int `json:"needed"`  // the fewest requests that change something and give each pod its address
	Planned int `json:"planned"` // those of the mode's plan, which keeps some addresses ready besides
	Made    int `json:"made"`    // those that passed until Reached
	Refused int `json:"refused"` // requests that were refused until Reached, describes among them

	PlanBound Seconds   `json:"planBound"` // as Bound, of those planned
	Requests  []Request `json:"requests"`
}

// Ratio is how many times the bound was reached, 0 if there is none.
func (s Served) Ratio() float64 {
	if s.Bound <= 0 {
		return 0
	}
	return float64(s.Reached) / float64(s.Bound)
}

// Request counts the requests of a kind that a cloud's buckets count.
type Request struct {
	Name    string  `json:"name"`
	Changes bool    `json:"changes"` // they change something
	Needed  int     `json:"needed"`
	Planned int     `json:"planned"`
	Passed  int     `json:"passed"`
	Refused int     `json:"refused"`
	Bound   Seconds `json:"bound"` // when the last of those needed has passed and its call has ended, at the soonest
}

// race measures how long it takes until all pods have their addresses.
type race struct {
	left   int // pods without one
	cold   bool
	plans  []nodePlan
	before map[string]Passed // those before the load
	served *Served
}

// newRace begins when the load does.
func (p *play) newRace(l Load) *race {
	return &race{left: l.Pods(), cold: l.Cold, plans: p.plansOf(l), before: p.till.requestCounts()}
}

// notePodServed notes that one more pod has its address.
func (r *race) notePodServed(p *play) {
	if r == nil {
		return
	}
	if r.left--; r.left == 0 {
		r.finishRace(p)
	}
}

// finishRace takes down what was counted until now.
func (r *race) finishRace(p *play) {
	r.served = r.servedIn(p.world, newTolls(p.world), p.till.requestCounts())
	r.served.Reached = Seconds(p.clock.now)
}

// servedIn returns what the requests of the race came to in a world, but for how long it took.
func (r *race) servedIn(w World, tolls *tolls, done map[string]Passed) *Served {
	s := &Served{All: r.left == 0}
	tariffs := w.tariffsOf(tolls, r.plans)
	for _, t := range w.withOthers(tariffs, done, w.describing()) {
		name := t.name
		one := Request{Name: name, Changes: !t.describes,
			Passed: done[name].Passed - r.before[name].Passed, Refused: done[name].Refused - r.before[name].Refused}
		one.Needed, one.Planned = t.countRequests(r.plans, r.cold)
		one.Bound = t.bound(one.Needed)
		if one.Bound > s.Bound {
			s.Bound, s.By = one.Bound, name
		}
		s.addRequest(one, t.bound(one.Planned))
	}
	if calls := callsBound(tariffs, r.plans); calls > s.Bound {
		s.Bound, s.By = calls, ""
	}
	return s
}

func (s *Served) addRequest(r Request, planned Seconds) {
	s.Requests = append(s.Requests, r)
	s.PlanBound = max(s.PlanBound, planned)
	s.Refused += r.Refused
	if r.Changes {
		s.Needed, s.Planned, s.Made = s.Needed+r.Needed, s.Planned+r.Planned, s.Made+r.Passed
	}
}
