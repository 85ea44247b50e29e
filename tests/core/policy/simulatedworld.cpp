// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/policy/simulatedworld.h"

#include "core/files/sha256.h"
#include "core/policy/search/draws.h"
#include "core/talk/prompt.h"
#include "core/talk/reply.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace klineage::tests {

using policy::Draws;
using policy::Outcome;

namespace {

constexpr double rootNs = 100'000;

// Roles: 0-4 gain alone; 5+6 and 7+8 gain together; 9 wrong, 10 does not compile, 11 keeps 0 and 1 out.
constexpr int wrongRole = 9;
constexpr int brokenRole = 10;
constexpr int deadEndRole = 11;

std::uint64_t hashOf(std::string_view text, std::uint64_t seed)
{
    std::uint64_t hash = 0xcbf29ce484222325ull ^ (seed * 0x9e3779b97f4a7c15ull);
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    return hash;
}

std::string nameOf(int edit)
{
    return std::string("edit e") + (edit < 10 ? "0" : "") + std::to_string(edit);
}

/// The edits that a text names.
std::vector<int> editsIn(std::string_view text)
{
    std::vector<int> edits;
    for (std::size_t at = text.find("edit e"); at != std::string_view::npos;
         at = text.find("edit e", at + 1)) {
        if (at + 7 >= text.size() || text[at + 6] < '0' || text[at + 6] > '9')
            continue;
        const int edit = (text[at + 6] - '0') * 10 + (text[at + 7] - '0');
        if (edit >= 0 && edit < SimulatedWorld::editCount)
            edits.push_back(edit);
    }
    return edits;
}

bool has(std::string_view text, std::string_view part)
{
    return text.find(part) != std::string_view::npos;
}

/// The first fenced block from `at` on.
std::string_view blockAfter(std::string_view text, std::size_t at)
{
    const std::size_t open = text.find("```", at);
    const std::size_t line = text.find('\n', open);
    const std::size_t close = text.find("\n```", line);
    return open == std::string_view::npos ? std::string_view() : text.substr(line + 1, close - line);
}

} // namespace

SimulatedWorld::SimulatedWorld(std::uint64_t seed)
    : m_seed(seed)
{
    Draws draws(seed + 1000);
    std::iota(m_order.begin(), m_order.end(), 0);
    for (std::size_t i = m_order.size(); i > 1; --i)
        std::swap(m_order[i - 1], m_order[draws.below(i)]);
    for (int role = 0; role < editCount; ++role) {
        double &factor = m_factor[static_cast<std::size_t>(m_order[static_cast<std::size_t>(role)])];
        if (role < 5)
            factor = 1.1 + 0.7 * draws.uniform();
        else if (role < wrongRole)
            factor = role % 2 == 1 ? 0.9 + 0.08 * draws.uniform() : 1.0;
        else
            factor = role == deadEndRole ? 1.5 + 0.3 * draws.uniform() : 1.3;
    }
    for (int mask = 0; mask < (1 << editCount); ++mask) {
        Program program;
        for (int edit = 0; edit < editCount; ++edit) {
            if (mask >> edit & 1)
                program.edits.insert(edit);
        }
        if (fateOf(program) == Fate::Fine)
            m_optimum = std::max(m_optimum, factorOf(program.edits));
    }
}

double SimulatedWorld::factorOf(const std::set<int> &edits) const
{
    double factor = 1;
    for (const int edit : edits)
        factor *= m_factor[static_cast<std::size_t>(edit)];
    for (const std::size_t first : {std::size_t{5}, std::size_t{7}}) {
        if (edits.count(m_order[first]) > 0 && edits.count(m_order[first + 1]) > 0)
            factor *= first == 5 ? 2.0 : 1.7;
    }
    return factor;
}

SimulatedWorld::Fate SimulatedWorld::fateOf(const Program &program) const
{
    const auto holds = [&](int role) {
        return program.edits.count(m_order[static_cast<std::size_t>(role)]) > 0;
    };
    if (program.slip.starts_with("compile") || holds(brokenRole))
        return Fate::NoCompile;
    const bool clash = holds(deadEndRole) && (holds(0) || holds(1));
    return !program.slip.empty() || holds(wrongRole) || clash ? Fate::Wrong : Fate::Fine;
}

SimulatedWorld::Program SimulatedWorld::parse(std::string_view text)
{
    Program program;
    for (const int edit : editsIn(text))
        program.edits.insert(edit);
    if (const std::size_t at = text.find("slip "); at != std::string_view::npos)
        program.slip = std::string(text.substr(at + 5, text.find(';', at) - at - 5));
    return program;
}

std::string SimulatedWorld::write(const Program &program) const
{
    std::string code;
    for (const int edit : program.edits)
        code += nameOf(edit) + '(' + std::string(hashOf(nameOf(edit), m_seed) % 60, 'x') + ");\n";
    if (!program.slip.empty())
        code += "slip " + program.slip + ";\n";
    return "/*klineage\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"toy\"\ngrid = [\"R\"]\nblock = [1]\n"
           "args = [\"x\", \"y\", \"int C\"]\n*/\nkernel of the simulated world;\n"
           + code;
}

std::string SimulatedWorld::root() const
{
    return write({});
}

double SimulatedWorld::speedup(const std::string &text) const
{
    const Program program = parse(text);
    return fateOf(program) == Fate::Fine ? factorOf(program.edits) : 0;
}

gate::Trial SimulatedWorld::gate(const std::string &text, const std::string &parent) const
{
    const Program program = parse(text);
    gate::Trial trial;
    trial.candidate = files::sha256Hex(text);
    trial.parent = parent.empty() ? std::string() : files::sha256Hex(parent);
    trial.id = trial.candidate.substr(0, 16);
    trial.time = "2026-01-02T03:04:05Z";
    trial.workload = "toy";
    trial.environment = {"pocl", "simulated", {}};
    gate::Verdict &verdict = trial.verdict;
    const Fate fate = fateOf(program);
    if (fate == Fate::NoCompile) {
        verdict.status = gate::VerdictStatus::CompileError;
        verdict.stage = gate::Stage::Compile;
        verdict.reason = "compiler";
        verdict.message = "The candidate does not compile.";
        verdict.log = "toy.cl:12:3: error: use of undeclared identifier '"
                      + (program.slip.empty() ? std::string("broken") : program.slip.substr(8)) + "'\n";
        return trial;
    }
    if (fate == Fate::Wrong) {
        verdict.status = gate::VerdictStatus::Wrong;
        verdict.stage = gate::Stage::Correctness;
        verdict.reason = "mismatch";
        verdict.message = "y[3] is wrong.";
        return trial;
    }
    // Paired rounds see half a percent of noise, single latencies three.
    Draws draws(hashOf(text + parent, m_seed));
    const auto noise = [&draws](double share) {
        return std::exp(share * (draws.uniform() + draws.uniform() + draws.uniform() - 1.5) * 2);
    };
    const double ns = rootNs / factorOf(program.edits);
    verdict.status = gate::VerdictStatus::Correct;
    verdict.stage = gate::Stage::Profile;
    verdict.reason = "ok";
    verdict.message = "All cases are right.";
    const double measured = ns * noise(0.03);
    trial.latencyNs = {measured, measured * 0.99, measured * 1.01};
    if (!parent.empty()) {
        const double parentNs = rootNs / factorOf(parse(parent).edits);
        const double ratio = parentNs / ns * noise(0.005);
        verdict.comparisons.push_back({"parent",
                                       trial.parent,
                                       {ratio, ratio * 0.99, ratio * 1.01},
                                       parentNs,
                                       ratio > 1.02   ? gate::Change::Gain
                                       : ratio < 0.98 ? gate::Change::Loss
                                                      : gate::Change::NoGain});
    }
    return trial;
}

/// The author: reads the last question, and what it says about edits.
class SimulatedWorld::Reader
{
public:
    Reader(const SimulatedWorld &world, const llm::Request &request)
        : m_world(world)
        , m_text(request.messages.back().text)
        , m_draws(hashOf(m_text + std::to_string(request.messages.size()), world.m_seed))
    {
        m_base = baseOf(request);
        weigh();
    }

    [[nodiscard]] std::string answer()
    {
        const double mood = m_draws.uniform();
        if (mood < 0.03)
            return "I would rather talk about it.";
        if (mood < 0.04)
            return "DONE: nothing comes to mind";
        if (has(m_text, "holds the plan as plain text"))
            return "```\nApply " + nameOf(pick()) + ": the profile suggests it.\n```";
        if (has(m_text, "two or three sentences of plain text"))
            return "```\n" + summary() + "\n```";
        const std::string said = change();
        slip();
        return said + "\n\n```c\n" + m_world.write(m_base) + "```\n";
    }

private:
    /// The program that the question is about.
    [[nodiscard]] Program baseOf(const llm::Request &request) const
    {
        for (const char *lead : {"The program to change is ", "The best so far is ", "made from ",
                                 "The failing candidate is "}) {
            const std::size_t at = m_text.rfind(lead);
            if (at == std::string::npos)
                continue;
            const std::string_view rest = std::string_view(m_text).substr(at + std::string_view(lead).size());
            if (rest.starts_with("this file"))
                return parse(blockAfter(rest, 0));
            if (rest.starts_with("the file of your last reply") && request.messages.size() > 1)
                return parse(blockAfter(request.messages[request.messages.size() - 2].text, 0));
            return {};
        }
        return {};
    }

    /// What each edit is worth trying, from the lines that say what came of it and from the programs in view.
    void weigh()
    {
        m_weight.fill(1);
        std::string_view left = m_text;
        while (!left.empty()) {
            const std::size_t end = left.find('\n');
            const std::string_view line = left.substr(0, end);
            left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
            const bool isGood = has(line, "(gain)") || has(line, "Worked,") || has(line, "a new best,");
            const bool isBad = has(line, "(loss)") || has(line, "(no_gain)") || has(line, "Did harm,")
                               || has(line, "no faster") || has(line, "no new best");
            const bool isBroken = has(line, "wrong") || has(line, "compile_error");
            for (const int edit : editsIn(line)) {
                double &weight = m_weight[static_cast<std::size_t>(edit)];
                weight *= isGood ? 2.5 : isBad ? 0.4 : isBroken ? 0.5 : line.starts_with("edit e") ? 1.3 : 1;
            }
        }
        for (double &weight : m_weight)
            weight = std::clamp(weight, 0.02, 20.0);
    }

    /// An edit that the program does not have yet.
    [[nodiscard]] int pick()
    {
        double sum = 0;
        for (int edit = 0; edit < editCount; ++edit)
            sum += m_base.edits.count(edit) > 0 ? 0 : m_weight[static_cast<std::size_t>(edit)];
        double left = m_draws.uniform() * sum;
        int last = 0;
        for (int edit = 0; edit < editCount; ++edit) {
            if (m_base.edits.count(edit) > 0)
                continue;
            last = edit;
            left -= m_weight[static_cast<std::size_t>(edit)];
            if (left < 0)
                break;
        }
        return last;
    }

    [[nodiscard]] std::string summary() const
    {
        const std::vector<int> edits = editsIn(m_text.substr(std::min(m_text.find("Apply "), m_text.size())));
        return edits.empty() ? "Nothing in particular." : "What it did was " + nameOf(edits.front()) + '.';
    }

    [[nodiscard]] std::string change()
    {
        if (!m_base.slip.empty() && m_draws.uniform() < 0.7) {
            m_base.slip.clear();
            return "I repair what was broken.";
        }
        if (m_world.fateOf(m_base) != Fate::Fine && !m_base.edits.empty()) {
            const auto at = std::next(m_base.edits.begin(),
                                      static_cast<std::ptrdiff_t>(m_draws.below(m_base.edits.size())));
            const int edit = *at;
            m_base.edits.erase(at);
            m_base.slip.clear();
            return "I take " + nameOf(edit) + " back.";
        }
        if (const std::size_t plan = m_text.find("The plan:"); plan != std::string::npos) {
            const std::vector<int> wanted = editsIn(blockAfter(m_text, plan));
            m_base.edits.insert(wanted.begin(), wanted.end());
            return wanted.empty() ? "I do as the plan says." : "I apply " + nameOf(wanted.front()) + '.';
        }
        const bool isBold = has(m_text, "Write a program anew") || has(m_text, "This is seed");
        std::string said = "I apply";
        for (int count = isBold ? 2 + static_cast<int>(m_draws.below(2)) : 1; count > 0; --count) {
            const int edit = pick();
            m_base.edits.insert(edit);
            said += ' ' + nameOf(edit) + (count > 1 ? " and" : ".");
        }
        return said;
    }

    void slip()
    {
        const double care = has(m_text, "Rules from failures") ? 0.06 : 0.12;
        const double draw = m_draws.uniform();
        if (draw < care)
            m_base.slip = (draw < care / 2 ? "compile x" : "wrong x") + std::to_string(m_draws.below(1000));
    }

    const SimulatedWorld &m_world;
    std::string m_text;
    Draws m_draws;
    Program m_base;
    std::array<double, editCount> m_weight{};
};

std::string SimulatedWorld::answer(const llm::Request &request) const
{
    return Reader(*this, request).answer();
}

policy::Problem problemOf(std::uint64_t seed, std::map<std::string, std::string> options)
{
    policy::Problem problem;
    problem.workload = "toy";
    problem.workloadText = "name = \"toy\"\n";
    problem.platform = "pocl";
    problem.rootName = "toy/pocl/K00";
    problem.seed = seed;
    problem.options = std::move(options);
    return problem;
}

namespace {

/// What the run engine does with a reply, without files and money.
class Player
{
public:
    Player(policy::Policy &policy, const SimulatedWorld &world)
        : m_policy(policy)
        , m_world(world)
    {
        m_seen.insert(policy::normalizedCode(world.root()));
    }

    void answer(const policy::Ask &ask, const std::string &reply, SimulatedRun &run)
    {
        Outcome outcome = outcomeOf(ask, reply);
        outcome.reply = reply;
        ++run.questions;
        if (outcome.kind == Outcome::Kind::Gated) {
            const double speedup = m_world.speedup(outcome.tried.text);
            outcome.improved = outcome.tried.speedup > m_best;
            m_best = std::max(m_best, outcome.tried.speedup);
            run.best = std::max(run.best, speedup);
            if (run.toNinety == 0 && run.best >= 0.9 * m_world.optimum())
                run.toNinety = run.questions;
        }
        m_policy.observe(outcome);
    }

private:
    static Outcome without(Outcome::Kind kind, std::string problem)
    {
        Outcome outcome;
        outcome.kind = kind;
        outcome.problem = std::move(problem);
        return outcome;
    }

    Outcome outcomeOf(const policy::Ask &ask, const std::string &reply)
    {
        using Kind = Outcome::Kind;
        const auto reading = ask.wantsPlan ? policy::readReply(reply) : policy::readCandidateReply(reply);
        if (!reading)
            return without(Kind::NoCandidate, reading.error().message);
        if (reading->kind == policy::Reading::Kind::Done)
            return without(Kind::Done, reading->text);
        if (ask.wantsPlan) {
            const auto plan = m_policy.readPlan(reading->text);
            return plan ? without(Kind::Planned, {}) : without(Kind::NoCandidate, plan.error().message);
        }
        if (const std::string problem = m_policy.problemOf(reading->text); !problem.empty())
            return without(Kind::NoCandidate, problem);
        if (!m_seen.insert(policy::normalizedCode(reading->text)).second)
            return without(Kind::Wrapper, "The candidate is one that was gated before.");
        Outcome outcome = without(Kind::Gated, {});
        outcome.tried.text = reading->text;
        outcome.tried.trial = m_world.gate(reading->text, ask.baseText);
        if (outcome.tried.trial.latencyNs.value > 0)
            outcome.tried.speedup = rootNs / outcome.tried.trial.latencyNs.value;
        return outcome;
    }

    policy::Policy &m_policy;
    const SimulatedWorld &m_world;
    std::set<std::string> m_seen;
    double m_best = 1;
};

} // namespace

SimulatedRun play(policy::Policy &policy, const SimulatedWorld &world, int questions, bool batched)
{
    SimulatedRun run;
    policy::Tried root;
    root.text = world.root();
    root.trial = world.gate(root.text, {});
    root.speedup = 1;
    if (const Status begun = policy.begin(root); !begun) {
        run.end = begun.error().message;
        return run;
    }
    Player player(policy, world);
    while (run.questions < questions && run.end.empty()) {
        const auto room = static_cast<std::size_t>(questions - run.questions);
        const std::size_t most = batched ? std::min(policy.ahead(), room) : 1;
        run.furthestAhead = std::max(run.furthestAhead, most);
        std::vector<policy::Ask> asks;
        std::vector<std::string> replies;
        while (asks.size() < most && run.end.empty()) {
            Result<policy::Move> move = policy.next();
            if (!move) {
                run.end = move.error().message;
            } else if (const auto *end = std::get_if<policy::End>(&*move)) {
                run.end = end->reason;
            } else {
                asks.push_back(std::get<policy::Ask>(std::move(*move)));
                const policy::Ask &ask = asks.back();
                run.prompts.push_back(ask.action + '|' + ask.title + '|' + ask.request.messages.back().text);
                ++run.actions[ask.action];
                replies.push_back(world.answer(ask.request));
            }
        }
        for (std::size_t i = 0; i < asks.size(); ++i)
            player.answer(asks[i], replies[i], run);
    }
    return run;
}

} // namespace klineage::tests
