// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/numbertext.h"
#include "core/report/parts.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace klineage::report {

namespace {

constexpr std::size_t mostValues = 3;

bool isNumber(const std::string &text)
{
    double value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size();
}

/// Values in the order in which they first came.
class Values
{
public:
    void add(const std::string &value)
    {
        if (!value.empty() && std::find(m_values.begin(), m_values.end(), value) == m_values.end())
            m_values.push_back(value);
    }

    /// "13.0"; "13.0 / 13.1"; of more numbers "36 to 54"; of more texts the first and how many others.
    [[nodiscard]] std::string text() const
    {
        if (m_values.size() > 1 && std::all_of(m_values.begin(), m_values.end(), isNumber)) {
            const auto less = [](const std::string &a, const std::string &b) {
                return numberIn(a) < numberIn(b);
            };
            const auto [low, high] = std::minmax_element(m_values.begin(), m_values.end(), less);
            return *low + " to " + *high;
        }
        std::string text;
        for (std::size_t i = 0; i < std::min(m_values.size(), mostValues); ++i)
            text += (i > 0 ? " / " : "") + m_values[i];
        if (m_values.size() > mostValues)
            text += " and " + std::to_string(m_values.size() - mostValues) + " others";
        return text;
    }

private:
    std::vector<std::string> m_values;
};

/// What a reader asks of a machine, in this order, a line a group; what else is recorded stays in the trials.
struct ShownFact {
    const char *group;
    const char *name;
    const char *before;
    const char *after;
};
constexpr ShownFact shownFacts[] = {
    {"Machine", "cpu", "", ""},
    {"Machine", "cpu_threads", "", " threads"},
    {"Machine", "sm_count", "", " SMs"},
    {"Machine", "kernel", "", ""},
    {"Software", "driver", "driver ", ""},
    {"Software", "cuda_driver", "CUDA ", ""},
    {"Software", "compiler", "", ""},
    {"Software", "opencl_platform", "", ""},
    {"While timed", "timed_sm_clock_mhz", "SM clock ", " MHz"},
    {"While timed", "mem_clock_mhz", "memory clock ", " MHz"},
    {"While timed", "temperature_c", "", " °C"},
    {"While timed", "power_w", "", " W"},
    {"While timed", "throttle_reasons", "throttle reasons ", ""},
    {"While timed", "load_1min", "load ", ""},
    {"Timed by", "timing", "", ""},
    {"Timed by", "isolation", "kernels confined by ", ""},
};

} // namespace

void addEnvironment(Facts &facts, const std::vector<const gate::Trial *> &trials)
{
    Values devices;
    Values gates;
    Values trust;
    bool isTrustSaid = false;
    std::map<std::string, Values> recorded;
    std::map<std::string, Values> references;
    std::string first;
    std::string last;
    for (const gate::Trial *trial : trials) {
        const gate::Environment &environment = trial->environment;
        devices.add(environment.device
                    + (environment.platform.empty() ? std::string() : " (" + environment.platform + ")"));
        gates.add(trial->gateVersion);
        trust.add(gate::toString(trial->trust));
        isTrustSaid = isTrustSaid || trial->trust != gate::Trust::Unsaid;
        for (const auto &[name, value] : environment.facts)
            recorded[name].add(value);
        for (const gate::Comparison &comparison : trial->verdict.comparisons) {
            if (comparison.against != "parent")
                references[comparison.against].add(comparison.subject);
        }
        const std::string day = trial->time.substr(0, 10);
        first = first.empty() ? day : std::min(first, day);
        last = std::max(last, day);
    }
    facts.add("Device", devices.text());
    std::string group;
    std::string line;
    for (const ShownFact &fact : shownFacts) {
        if (group != fact.group)
            facts.add(std::exchange(group, fact.group), std::exchange(line, {}));
        if (const auto found = recorded.find(fact.name); found != recorded.end())
            line += (line.empty() ? "" : ", ") + std::string(fact.before) + found->second.text() + fact.after;
    }
    facts.add(group, line);
    for (const auto &[name, versions] : references)
        facts.add("Reference " + name, versions.text());
    const std::string days = first == last ? first : first + " to " + last;
    facts.add("Recorded", days + (gates.text().empty() ? "" : ", by gate " + gates.text()));
    facts.add("Trust", isTrustSaid ? trust.text() : "");
}

} // namespace klineage::report
