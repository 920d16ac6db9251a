"""The bugs of the Redis adapter; see ``table``."""

from tests.mutants.mutant import LAWS, Mutant

HERE = "tests/integration/providers/"
COMMIT, DELIVER = "providers/redis/commit.lua", "providers/redis/deliver.lua"
CALLS, CONNECTIONS = "providers/redis/calls.py", "providers/redis/connections.py"
REWRITES = f"{HERE}test_redis_rewrites.py"

MUTANTS = (
    Mutant(
        name="Redis does not compare the revision",
        file="providers/redis/commit.lua",
        right="demand(put[2] == head[REVISION] and put[3] == head[REVISION_ID])",
        wrong="demand(put[2] ~= 0)",
        tests=(f"{LAWS}[redis-cas-wrong_expected_changes_nothing]",),
    ),
    Mutant(
        name="Redis does not look for the receipt",
        file="providers/redis/commit.lua",
        right="demand(not receipt)\n",
        wrong="",
        tests=(f"{LAWS}[redis-receipts-key_other_content_conflicts]",),
    ),
    Mutant(
        name="Redis claims a key that was buried",
        file="providers/redis/commit.lua",
        right="    demand(not (asked[5] and first == 't'))\n",
        wrong="",
        tests=(f"{LAWS}[redis-claims-tombstoned_key_is_refused]",),
    ),
    Mutant(
        name="Redis does not compare counters",
        file="providers/redis/commit.lua",
        right="    demand(asked[2] == null or asked[2] == values[i])\n",
        wrong="",
        tests=(f"{LAWS}[redis-counters-graph_counter_guards_decisions]",),
    ),
    Mutant(
        name="Redis leaves a head where it stood in the order",
        file="providers/redis/commit.lua",
        right="        leave(old[i])\n",
        wrong="",
        tests=(f"{LAWS}[redis-searching-pages_join_under_writes]",),
    ),
    Mutant(
        name="Redis tells one member too few that heads enter",
        file="providers/redis/sets.py",
        right="            sets.append((name, first, len(members)))\n",
        wrong="            sets.append((name, first, len(members) - 1))\n",
        tests=(f"{LAWS}[redis-searching-scope_filters_before_the_limit]",),
    ),
    Mutant(
        name="Redis takes a lease that somebody has",
        file="providers/redis/deliver.lua",
        right="local leased = delivery[ENDS] ~= null and now < tonumber(delivery[ENDS])",
        wrong="local leased = request.action ~= 'acquire' and now < tonumber(delivery[ENDS])",
        tests=(f"{LAWS}[redis-leases-lease_single_owner]",),
    ),
    Mutant(
        name="Redis acknowledges without the token",
        file="providers/redis/deliver.lua",
        right="not delivery[DELIVERED] and delivery[TOKEN] == request.token",
        wrong="not delivery[DELIVERED]",
        tests=(f"{LAWS}[redis-leases-acknowledge_needs_the_token]",),
    ),
    Mutant(
        name="Redis writes to another resource",
        file="providers/redis/prelude.lua",
        right="if marker ~= ARGV[1] then",
        wrong="if not marker then",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_identity]",),
    ),
    Mutant(
        name="Redis may expire what it keeps",
        file="providers/redis/prelude.lua",
        right="    demand(string.find(keys, ',expires=0,', 1, true), 'expiring_key')\n",
        wrong="",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_expiring_key]",),
    ),
    Mutant(
        name="Redis may be a replica",
        file="providers/redis/prelude.lua",
        right="    demand(string.find(replication, '\\nrole:master\\r', 1, true), 'replica')\n",
        wrong="",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_replica]",),
    ),
    Mutant(
        name="Redis may not sync what it acknowledges",
        file="providers/redis/calls.py",
        right="        check_settings(settings)\n",
        wrong="",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_aof]",),
    ),
    Mutant(
        name="Redis may begin its file while it serves",
        file="providers/redis/prelude.lua",
        right="    demand((has_grown and not",
        wrong="    demand(true or (has_grown and not",
        tests=(REWRITES,),
    ),
    Mutant(
        name="Redis may leave out what it wrote when it starts",
        file="providers/redis/fitness.py",
        right="if link.skips_on_loading else []",
        wrong="if not link else []",
        tests=(REWRITES,),
    ),
    Mutant(
        name="Redis may have been emptied",
        file="providers/redis/calls.py",
        right="        if writes < before:\n",
        wrong="        if writes < 0:\n",
        tests=(REWRITES,),
    ),
    Mutant(
        name="a lost reply of Redis counts as not sent",
        file="providers/redis/calls.py",
        right="            if sent.in_doubt:\n",
        wrong="            if sent.in_doubt and not isinstance(error, ProviderError):\n",
        tests=(f"{LAWS}[redis-faults-timeout_is_unknown]",),
    ),
    Mutant(
        name="Redis does not compare the revision id",
        file=COMMIT,
        right="demand(put[2] == head[REVISION] and put[3] == head[REVISION_ID])",
        wrong="demand(put[2] == head[REVISION])",
        tests=(f"{LAWS}[redis-cas-link_to_another_revision_is_refused]",),
    ),
    Mutant(
        name="Redis creates what is there",
        file=COMMIT,
        right="demand(put[2] == 0)",
        wrong="demand(put[2] >= 0)",
        tests=(f"{LAWS}[redis-cas-wrong_expected_changes_nothing]",),
    ),
    Mutant(
        name="Redis takes a revision id twice",
        file=COMMIT,
        right="    if found then\n",
        wrong="    if found == 'x' then\n",
        tests=(f"{LAWS}[redis-cas-revision_id_of_another_record_conflicts]",),
    ),
    Mutant(
        name="Redis does not look for tombstones",
        file=COMMIT,
        right="demand(not (asked[5] and first == 't'))",
        wrong="demand(asked[5] or first ~= 't')",
        tests=(f"{LAWS}[redis-claims-absence_holds_at_the_time_of_the_write]",),
    ),
    Mutant(
        name="Redis takes a key from whoever holds it",
        file=COMMIT,
        right="demand(first ~= 't' and holder == asked[4])",
        wrong="demand(first ~= 't')",
        tests=(f"{LAWS}[redis-claims-claim_is_put_if_absent]",),
    ),
    Mutant(
        name="Redis gives a key back for anybody",
        file=COMMIT,
        right="elseif asked[2] == 'release' and held[i] == 'r' .. asked[3] then",
        wrong="elseif asked[2] == 'release' then",
        tests=(f"{LAWS}[redis-claims-release_only_by_the_owner]",),
    ),
    Mutant(
        name="Redis looks for memory after its first write",
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
        name="Redis notices between two writes what it cannot write to",
        file=COMMIT,
        right="    if found ~= kind and found ~= 'none' then\n",
        wrong="    if found ~= kind and found == 'string' then\n",
        tests=(f"{HERE}test_redis_damage.py::test_keys_of_another_type",),
    ),
    Mutant(
        name="Redis acknowledges by a lease that is over",
        file=DELIVER,
        right="    done = holds and leased\n",
        wrong="    done = holds\n",
        tests=(f"{LAWS}[redis-leases-expired_lease_acknowledges_nothing]",),
    ),
    Mutant(
        name="Redis lets an effect overtake those before it",
        file=DELIVER,
        right=" and earlier[1] == request.effect\n",
        wrong="\n",
        tests=(f"{LAWS}[redis-leases-stream_order]",),
    ),
    Mutant(
        name="Redis ends a lease by the broker's clock",
        file="providers/redis/delivery.py",
        right='"lease": request.lease_ms,',
        wrong=(
            '"lease": request.lease_ms + int('
            '1000 * (__import__("time").time() - __import__("time").clock_gettime(0))),'
        ),
        tests=(f"{LAWS}[redis-leases-lease_time_is_store_time]",),
    ),
    Mutant(
        name="Redis is sent a commit in doubt again",
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
        name="a connection to Redis in doubt is lent again",
        file="providers/lending.py",
        right="            self.drop(link)\n",
        wrong="            self.give(link)\n",
        tests=(f"{HERE}test_redis_interruptions.py::test_200_short_deadlines_on_a_pool_of_two",),
    ),
    Mutant(
        name="the end of an idle connection to Redis is not looked for",
        file=CONNECTIONS,
        right="    return await link.connection.is_quiet()\n",
        wrong="    return link.connection.is_connected\n",
        tests=(f"{HERE}test_redis_interruptions.py::test_the_call_after_a_restart_is_answered",),
    ),
    Mutant(
        name="a connection to Redis in doubt takes its leave",
        file=CONNECTIONS,
        right="            self._writer.transport.abort()\n",
        wrong="            pass\n",
        tests=(
            f"{HERE}test_redis_interruptions.py::"
            "test_late_calls_on_a_frozen_server_leave_nothing_open",
        ),
    ),
    Mutant(
        name="a connection to Redis is opened for every call",
        file="providers/lending.py",
        right="            link = await self._free() or await self._connect()\n",
        wrong="            link = await self._connect()\n",
        tests=(f"{HERE}test_redis_interruptions.py::test_a_crowd_opens_one_pool",),
    ),
    Mutant(
        name="Redis keeps all projects under the same keys",
        file="providers/redis/keys.py",
        right='return f"{prefix}:{{{digest}}}:"',
        wrong='return f"{prefix}:{{{digest[:0]}}}:"',
        tests=(f"{LAWS}[redis-identifiers-same_ids_in_two_projects_and_two_tenants]",),
    ),
    Mutant(
        name="Redis shows histories of any agent",
        file="providers/redis/revisions.lua",
        right="head[AGENT] ~= request.agent or ",
        wrong="",
        tests=(f"{LAWS}[redis-history-history_of_another_agent_is_not_found]",),
    ),
    Mutant(
        name="Redis looks for a text in all heads at once",
        file="providers/redis/search.lua",
        right="local HEADS, BYTES, STEP = 500, ",
        wrong="local HEADS, BYTES, STEP = 50000, ",
        tests=(f"{HERE}test_redis_costs.py::test_a_text_is_looked_for_in_stretches_of_heads",),
    ),
    Mutant(
        name="Redis walks past those who have a tag",
        file="providers/redis/search.lua",
        right="    if tag then\n",
        wrong="    if tag == '' then\n",
        tests=(f"{HERE}test_redis_costs.py::test_a_page_costs_what_it_holds",),
    ),
    Mutant(
        name="Redis recalls what is not eligible",
        file="providers/redis/recall.py",
        right="return is_eligible(to_judged(tag, name, head), request.eligible)",
        wrong="return to_judged(tag, name, head) is not None",
        tests=(f"{LAWS}[redis-recall_filters-every_filter_acts_on_every_arm]",),
    ),
    Mutant(
        name="Redis ends recall with the first stretch",
        file="providers/redis/recall.py",
        right='        asked["low"] = _to_text(low)\n    # Not here',
        wrong='        asked["low"] = ""\n    # Not here',
        tests=(f"{HERE}test_redis_recall.py::test_a_scope_is_looked_through_in_stretches",),
    ),
    Mutant(
        name="Redis looks through all of a scope at once",
        file="providers/redis/recall.lua",
        right="local RECORDS, BYTES = 500, ",
        wrong="local RECORDS, BYTES = 50000, ",
        tests=(f"{HERE}test_redis_recall.py::test_a_scope_is_looked_through_in_stretches",),
    ),
    Mutant(
        name="Redis takes a part of a term for the term",
        file="providers/redis/entries.py",
        right='return f"\\n{term}\\t" if plain else _NUL',
        wrong='return f"{term}\\t" if plain else _NUL',
        tests=(f"{LAWS}[redis-recalling-terms_mean_themselves]",),
    ),
    Mutant(
        name="Redis leaves a memory where it stood by its old entry",
        file="providers/redis/commit.lua",
        right="    if was_one then\n",
        wrong="    if not record_id then\n",
        tests=(f"{HERE}test_redis_recall.py::test_who_lacks_an_entry_is_told_while_it_does",),
    ),
    Mutant(
        name="Redis puts an entry for a head that moved on",
        file="providers/redis/index.lua",
        right=" and head[REVISION_ID] == asked[2]",
        wrong="",
        tests=(f"{LAWS}[redis-recall_index-index_puts_entries_for_the_head_that_was_read]",),
    ),
)
