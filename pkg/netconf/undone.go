package netconf

// UndoneWords begin what an agent says of repairs that don't last. The plugin, which reads no status, knows
// by them that waiting for the agent is in vain.
const UndoneWords = "something on this node undoes what the agent repairs"
