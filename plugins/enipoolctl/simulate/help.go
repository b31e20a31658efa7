package simulate

const simulateExample = `  enipoolctl simulate --trace test/traces/alibaba-gpu-2023.csv --compare batch:B=16,mf=0.5 --compare burstable --compare besteffort:preAllocate=8 --compare reactive
  enipoolctl simulate --workload burst --pods-per-node 40 --instance-type m5.4xlarge --compare batch:B=8,name=small --compare batch:B=32,name=large --html burst.html
  enipoolctl simulate --cloud aws --nodes 1000
  enipoolctl simulate --cloud aws --nodes 5000 --operator
  enipoolctl simulate --cloud aws --nodes 500 --operator --topology-share 20 --drain 50 --compare batch
  enipoolctl simulate --cloud aws --nodes 5000 --workload steady --pods-per-node 10 --duration 2h --compare batch
  enipoolctl simulate --workload churn --nodes 100 --duration 6h --cloud aws --subnet 10.0.0.0/20 --lead 500ms -o json`

const simulateLong = `Play a load of pods in virtual time, once for each setting, and compare them.

Each node has the agent itself, with its node cache in memory; the cloud is a
simulated account, whose calls take time, can be refused, and run out of addresses
and ENIs; the nodes share it. They start ten minutes before the load begins, one
after the other, with the pods of its first moment; nothing of that is counted. Left
out is what takes no part: the kernel, images, the scheduler. The same flags give
the same numbers.

A load is made up, by --workload KIND:

  steady          all pods run all the time, one is replaced now and then
  burst           half of the pods, and every few hours many more for some minutes
  rolling-update  every few hours all pods are replaced, a quarter at a time
  cron            half of the pods, and jobs every five minutes, more every hour
  diurnal         few pods by night, all of them at noon
  churn           pods of some minutes come at random
  start           all nodes begin at once, and all of their pods with them
  surge           all pods come at once to nodes that had none

or it is a trace, by --trace FILE, which is csv with a header. Either how many pods
there are, of which those that run longest end first:

  time,pods
  0,12
  30.5,14

or what each pod did:

  time,event,pod
  2026-01-02T15:04:05Z,add,web-1
  2026-01-02T15:09:00Z,delete,web-1

Times are seconds since the start, or dates like these, and in order. A third or
fourth column, node, names the node. Without it every node of --nodes plays the
whole trace.

A cloud, --cloud aws or baidu, counts requests of all nodes together. A call of an
agent is several of them: to make an ENI, EC2 is asked to create it, to attach it, how
far that is, and to let it go with its instance. Each kind of request has its own
limit, a bucket that fills again with a number of them a second; the numbers are
printed. Without --workload and --trace it plays start with each mode: how long do 1,000
nodes take until all of their pods have an address?

With --operator each setting is played a second time, where enipool-operator calls the
cloud for all nodes: what it decides for a node, and the queue and the budget of its
calls, are the operator's own; the API server takes no time. It takes --share percent of
each limit, and its BOUND is that of its share. It can be played with up to 1,000,000
nodes; of more than 10,000 the agents that call the cloud themselves are left out. The
load is as long as all that is ordered takes.

Pods of topologies, --topology-share percent of each node's, have addresses by name, of a
subnet that is topologies' alone: on each node an ENI is made there, and each ENI gets
what it is to carry in one call. With --drain some nodes lose those pods to the others
then: a sticky or fixed address is taken from the one node before the other gets it, an
elastic pod gets another one at once. Tables tell how long they waited and what that
cost. Claims, pods' ends and the agents' words take no time.

A setting, --compare MODE[:KEY=VALUE,...], is --config with another mode and other
keys. Its mode is one of:

  batch       the pool is a multiple of B, sized by the scaling equation
  burstable   an ENI is filled when it is made, and a number of them is kept idle
  besteffort  a number of free addresses is kept between watermarks
  reactive    as batch, but one batch at a time: the monitor before the equation
  kpa         as batch, but by the mean of the used addresses, as Knative sizes pods

Its keys are those of the agent's file, which conf/agent.yaml explains:

  batch, reactive  B (batch), mf (minFree), Mf (maxFree; mf + 100% if not given),
                   minPool, countPrimaries, primaryForm
  kpa              B (batch), minPool, countPrimaries, utilization, grow,
                   activation, kpaForm
  burstable        multiple (burstableMultiple, burstableMehrfachENI), partial,
                   returnENIs
  besteffort       preAllocate, minAllocate, maxAboveWatermark
  all              delay, stable, burstWindow, burst, shrink, releaseInterval,
                   exhaustedSpare, exhaustedDelay, firstENI, maxAllocate,
                   maxAllocateENI, maxIPsPerENI, preAllocateENI,
                   topologyPlaces, coolDown, resync, settle, leakAge, cloud.callsPerSecond, cloud.callsBurst,
                   cloud.concurrent, cloud.timeout

and name=NAME, which is what its row is called in place of what is typed.

The table has a row for each setting. Less is better everywhere; * marks the least.

  WAITS  how long pods waited from their first ADD to their address
    P50, P99, MAX  half of the pods, 99 of 100, and all of them waited at most so
                   long
    FAILED         ADDs that ended without an address; their pods try again
    NEVER          pods that got no address as long as they lived
  IDLE   addresses on nodes that no pod had: free, cooling, or being released
    MEAN, MAX      on average, and the most at once
    ADDR-HOURS     an address that is idle for an hour is one
  CALLS  requests to the cloud
    TOTAL          all of them
    CHANGES        those that change something; the others only look
    ATTACHED       those that asked for an ENI
    FLAPS          how often a node needed addresses within 10 minutes of
                   releasing some
    THROTTLED      requests that were refused because there were too many

Of start and surge there are two more. One says how near it came to what the limits
of the cloud allow:

  ALL SERVED
    AFTER          how long it took until the last pod had its address
    BOUND          how long it takes at least: the requests without which the pods
                   get no addresses pass the limits no sooner
    RATIO          AFTER by BOUND
    PLAN           the bound of all that the mode orders, what it keeps ready too
  CHANGES  requests that change something: NEEDED for the pods, PLANNED with what
           the mode keeps ready, MADE until all were served; and those of all kinds
           that were REFUSED

and one for each setting has the same numbers by kind of request.

In a cloud, other loads have a table of how many requests of each kind all nodes make A SECOND,
and which SHARE of its LIMIT that is. The nodes' start, before the load, passes without limits.

Below are lines over time, of all nodes together: demand, the pods that are to
have an address; owned, the addresses on nodes; waiting, pods without an address (if
there are any); changes, the calls that change something.

-o json prints it with more: waits.waited are pods that waited at all, idle.enis is
the mean number of ENIs with addresses for pods, calls are also counted by what they
do, and series are the lines, with the target of the pools, free addresses, and the
longest wait. Times are seconds. --html writes a page that shows all that in plots
and needs no network.`
