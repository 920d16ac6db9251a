"""The bugs of the Redis adapter; see ``table``."""

from tests.mutants.mutant import LAWS, Mutant

HERE = "tests/integration/providers/"
COMMIT, DELIVER = "providers/redis/commit.lua", "providers/redis/deliver.lua"
PRELUDE, SEARCH = "providers/redis/prelude.lua", "providers/redis/search.lua"
CALLS, CONNECTIONS = "providers/redis/calls.py", "providers/redis/connections.py"

MUTANTS = (
    Mutant(
        name="Redis: the commit has no revision predicate",
        file=COMMIT,
        right="demand(put[2] == head[REVISION] and put[3] == head[REVISION_ID])",
        wrong="demand(put[2] > 0)",
        tests=(f"{LAWS}[redis-cas-wrong_expected_changes_nothing]",),
    ),
    Mutant(
        name="Redis: the revision a head links to is not compared",
        file=COMMIT,
        right="demand(put[2] == head[REVISION] and put[3] == head[REVISION_ID])",
        wrong="demand(put[2] == head[REVISION])",
        tests=(f"{LAWS}[redis-cas-link_to_another_revision_is_refused]",),
    ),
    Mutant(
        name="Redis: what is created may be there",
        file=COMMIT,
        right="demand(put[2] == 0)",
        wrong="demand(put[2] >= 0)",
        tests=(f"{LAWS}[redis-cas-wrong_expected_changes_nothing]",),
    ),
    Mutant(
        name="Redis: a revision id may be used twice",
        file=COMMIT,
        right="        if found then\n",
        wrong="        if found == 'x' then\n",
        tests=(f"{LAWS}[redis-cas-revision_id_of_another_record_conflicts]",),
    ),
    Mutant(
        name="Redis: a receipt stops nobody",
        file=COMMIT,
        right="demand(not receipt)",
        wrong="demand(true)",
        tests=(f"{HERE}test_redis_races.py::test_fifty_identical_burials",),
    ),
    Mutant(
        name="Redis: a tombstone stops nobody",
        file=COMMIT,
        right="demand(not (asked[5] and first == 't'))",
        wrong="demand(asked[5] or first ~= 't')",
        tests=(f"{LAWS}[redis-claims-absence_holds_at_the_time_of_the_write]",),
    ),
    Mutant(
        name="Redis: a key is taken from whoever holds it",
        file=COMMIT,
        right="demand(first ~= 't' and holder == asked[4])",
        wrong="demand(first ~= 't')",
        tests=(f"{LAWS}[redis-claims-claim_is_put_if_absent]",),
    ),
    Mutant(
        name="Redis: a key is given back by anybody",
        file=COMMIT,
        right="elseif asked[2] == 'release' and held[i] == 'r' .. asked[3] then",
        wrong="elseif asked[2] == 'release' then",
        tests=(f"{LAWS}[redis-claims-release_only_by_the_owner]",),
    ),
    Mutant(
        name="Redis: counters are not compared",
        file=COMMIT,
        right="demand(asked[2] == null or asked[2] == values[i])",
        wrong="demand(true)",
        tests=(f"{LAWS}[redis-counters-graph_race_has_one_winner]",),
    ),
    Mutant(
        name="Redis: an update leaves the old place in an index",
        file=COMMIT,
        right="    later('ZREM', name, member)\n",
        wrong="    later('ZREM', name, '')\n",
        tests=(f"{LAWS}[redis-searching-pages_join_under_writes]",),
    ),
    Mutant(
        name="Redis: memory is looked for after the first write",
        file=COMMIT,
        right="""\
redis.call('ZADD', key('order'), 'XX', 0, '')
redis.call('ZREM', key('order'), '')
""",
        wrong="""\
redis.call('ZREM', key('order'), '')
redis.call('ZADD', key('order'), 'XX', 0, '')
""",
        tests=(f"{HERE}test_redis_faults.py::test_out_of_memory",),
    ),
    Mutant(
        name="Redis: what fails is noticed between two writes",
        file=COMMIT,
        right="    if found ~= kind and found ~= 'none' then\n",
        wrong="    if found ~= kind and found == 'string' then\n",
        tests=(f"{HERE}test_redis_damage.py::test_keys_of_another_type",),
    ),
    Mutant(
        name="Redis: an acknowledgement needs no token",
        file=DELIVER,
        right="local holds = not delivery[DELIVERED] and delivery[TOKEN] == request.token",
        wrong="local holds = not delivery[DELIVERED]",
        tests=(f"{LAWS}[redis-leases-acknowledge_needs_the_token]",),
    ),
    Mutant(
        name="Redis: a lease that is over still acknowledges",
        file=DELIVER,
        right="    done = holds and leased\n",
        wrong="    done = holds\n",
        tests=(f"{LAWS}[redis-leases-expired_lease_acknowledges_nothing]",),
    ),
    Mutant(
        name="Redis: an effect overtakes those before it",
        file=DELIVER,
        right=" and earlier[1] == request.effect\n",
        wrong="\n",
        tests=(f"{LAWS}[redis-leases-stream_order]",),
    ),
    Mutant(
        name="Redis: a lease ends by the broker's clock",
        file="providers/redis/delivery.py",
        right='"lease": request.lease_ms,',
        wrong=(
            '"lease": request.lease_ms + int('
            '1000 * (__import__("time").time() - __import__("time").clock_gettime(0))),'
        ),
        tests=(f"{LAWS}[redis-leases-lease_time_is_store_time]",),
    ),
    Mutant(
        name="Redis: the marker is not compared",
        file=PRELUDE,
        right="if marker ~= ARGV[1] then",
        wrong="if not marker then",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_generation]",),
    ),
    Mutant(
        name="Redis: a replica serves",
        file=PRELUDE,
        right="demand(string.find(replication, '\\nrole:master\\r', 1, true), 'replica')",
        wrong="demand(true, 'replica')",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_replica]",),
    ),
    Mutant(
        name="Redis: keys may expire",
        file=PRELUDE,
        right="demand(string.find(keys, ',expires=0,', 1, true), 'expiring_key')",
        wrong="demand(true, 'expiring_key')",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_expiring_key]",),
    ),
    Mutant(
        name="Redis: a write is acknowledged under unfit settings",
        file=CALLS,
        right="        check_settings(settings)\n",
        wrong="        if call.script not in WRITING:\n            check_settings(settings)\n",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_aof]",),
    ),
    Mutant(
        name="Redis: a lost reply is told as nothing written",
        file=CALLS,
        right="            if sent.in_doubt:\n",
        wrong="            if sent.in_doubt and isinstance(error, NegotiationRefusedError):\n",
        tests=(f"{LAWS}[redis-faults-timeout_is_unknown]",),
    ),
    Mutant(
        name="Redis: a commit in doubt is sent again",
        file=CALLS,
        right="            if sent.in_doubt:\n",
        wrong="""\
            if sent.in_doubt and call.script in WRITING and timeout > 1:
                return await self._bounded(partial(self._run, call, sent), timeout)
            if sent.in_doubt:
""",
        tests=(f"{HERE}test_redis_once.py::test_a_lost_reply",),
    ),
    Mutant(
        name="Redis: a connection in doubt is lent again",
        file=CALLS,
        right="                    self.connections.drop(link)\n",
        wrong="                    self.connections.give(link)\n",
        tests=(f"{HERE}test_redis_interruptions.py::test_200_short_deadlines_on_a_pool_of_two",),
    ),
    Mutant(
        name="Redis: the end of an idle connection is not looked for",
        file=CONNECTIONS,
        right="            if await link.connection.is_quiet():\n",
        wrong="            if link.connection.is_connected:\n",
        tests=(f"{HERE}test_redis_interruptions.py::test_the_call_after_a_restart_is_answered",),
    ),
    Mutant(
        name="Redis: a connection in doubt takes its leave",
        file=CONNECTIONS,
        right="            self._writer.transport.abort()\n        await super().disconnect(",
        wrong="            pass\n        await super().disconnect(",
        tests=(
            f"{HERE}test_redis_interruptions.py::"
            "test_late_calls_on_a_frozen_server_leave_nothing_open",
        ),
    ),
    Mutant(
        name="Redis: who gives up leaves connections behind",
        file=CONNECTIONS,
        right="            link = await self._free() or await self.open()\n",
        wrong="            link = await self.open()\n",
        tests=(f"{HERE}test_redis_interruptions.py::test_a_crowd_opens_one_pool",),
    ),
    Mutant(
        name="Redis: projects share their keys",
        file="providers/redis/keys.py",
        right='return f"{prefix}:{{{digest}}}:"',
        wrong='return f"{prefix}:{{{digest[:0]}}}:"',
        tests=(f"{LAWS}[redis-identifiers-same_ids_in_two_projects_and_two_tenants]",),
    ),
    Mutant(
        name="Redis: histories of any agent are shown",
        file="providers/redis/revisions.lua",
        right="head[AGENT] ~= request.agent or ",
        wrong="",
        tests=(f"{LAWS}[redis-history-history_of_another_agent_is_not_found]",),
    ),
    Mutant(
        name="Redis: a text is looked for in all heads at once",
        file=SEARCH,
        right="local HEADS, BYTES, STEP = 500, ",
        wrong="local HEADS, BYTES, STEP = 50000, ",
        tests=(f"{HERE}test_redis_costs.py::test_a_text_is_looked_for_in_stretches_of_heads",),
    ),
    Mutant(
        name="Redis: a search walks past those who have the tag",
        file=SEARCH,
        right="    if tag then\n",
        wrong="    if tag == '' then\n",
        tests=(f"{HERE}test_redis_costs.py::test_a_page_costs_what_it_holds",),
    ),
)
