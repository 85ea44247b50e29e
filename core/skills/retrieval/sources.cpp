// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/retrieval/sources.h"

#include "core/kernel/candidatetext.h"
#include "core/skills/vocabulary.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace klineage::skills {

namespace {

void addSizes(std::map<std::string, double> &values, const workload::Workload &workload,
              const workload::Case &timed)
{
    for (const auto &[axis, size] : timed.axes)
        values[axis] = static_cast<double>(size);
    std::int64_t inputPitch = 0;
    std::int64_t outputPitch = 0;
    for (const workload::Tensor &tensor : workload.tensors) {
        const Result<std::vector<std::int64_t>> shape = workload.shapeOf(tensor, timed);
        if (!shape || shape->empty())
            continue;
        const bool isInput = tensor.role == workload::Role::Input;
        double elements = 1;
        for (const std::int64_t extent : *shape)
            elements *= static_cast<double>(extent);
        values[isInput ? "input_elements" : "output_elements"] += elements;
        if (!isInput)
            values.emplace("row_elements", static_cast<double>(shape->back()));
        if (shape->size() < 2)
            continue;
        std::int64_t &pitch = isInput ? inputPitch : outputPitch;
        pitch = std::gcd(pitch, shape->back() * static_cast<std::int64_t>(kernel::sizeOf(tensor.dtype)));
    }
    if (inputPitch > 0)
        values["input_pitch_bytes"] = static_cast<double>(inputPitch);
    if (outputPitch > 0)
        values["output_pitch_bytes"] = static_cast<double>(outputPitch);
    const Result<double> flops = workload.flops.evaluateReal(workload.bindings(timed));
    const Result<double> bytes = workload.bytes.evaluateReal(workload.bindings(timed));
    if (flops && bytes && *bytes > 0) {
        values["flops"] = *flops;
        values["bytes"] = *bytes;
        values["flops_per_byte"] = *flops / *bytes;
    }
}

std::string withoutComments(std::string_view code)
{
    std::string out;
    for (std::size_t at = 0; at < code.size();) {
        const std::string_view rest = code.substr(at);
        std::size_t end = 0;
        if (rest.starts_with("//"))
            end = rest.find('\n');
        else if (rest.starts_with("/*"))
            end = rest.find("*/", 2);
        if (end > 0)
            at += std::min(end, rest.size());
        else
            out += code[at++];
    }
    return out;
}

/// Where both say their families: a sign such as mma.sync shows in a plain product nothing of what attention is built of.
bool isOfItsFamilies(const Target &target, const Card &card)
{
    const std::vector<std::string> &families = card.capability.families;
    return families.empty() || target.families.empty()
           || std::find_first_of(families.begin(), families.end(), target.families.begin(),
                                 target.families.end())
                  != families.end();
}

} // namespace

LineagePath pathOf(const lineage::Lineage &lineage)
{
    LineagePath path{lineage.key(), lineage.workload, lineage.platform, {}, {}, {}};
    for (const lineage::Transition &step : lineage.transitions) {
        path.cards.push_back(step.card);
        path.categories.push_back(step.category);
        path.states.push_back(step.to);
    }
    return path;
}

std::vector<LineagePath> pathsOf(const std::vector<lineage::Lineage> &lineages)
{
    std::vector<LineagePath> paths;
    for (const lineage::Lineage &lineage : lineages)
        paths.push_back(pathOf(lineage));
    return paths;
}

WorkloadTags tagsOf(const workload::Workload &workload)
{
    WorkloadTags out{workload.name, {}};
    const auto add = [&](std::string tag) {
        if (!tag.empty() && std::find(out.tags.begin(), out.tags.end(), tag) == out.tags.end())
            out.tags.push_back(std::move(tag));
    };
    add(workload.oracle);
    for (std::size_t begin = 0; begin <= workload.oracle.size();) {
        const std::size_t end = std::min(workload.oracle.find('_', begin), workload.oracle.size());
        add(workload.oracle.substr(begin, end - begin));
        begin = end + 1;
    }
    int inputs = 0;
    for (const workload::Tensor &tensor : workload.tensors) {
        add(kernel::toString(tensor.dtype));
        const bool isInput = tensor.role == workload::Role::Input;
        inputs += isInput ? 1 : 0;
        add((isInput ? "input of rank " : "output of rank ") + std::to_string(tensor.shape.size()));
    }
    add(std::to_string(inputs) + (inputs == 1 ? " input" : " inputs"));
    if (workload.tolerance.reduction)
        add("reduction");
    return out;
}

std::vector<WorkloadTags> tagsOf(const std::vector<workload::Workload> &workloads)
{
    std::vector<WorkloadTags> tags;
    for (const workload::Workload &workload : workloads)
        tags.push_back(tagsOf(workload));
    return tags;
}

void describe(Target &target, const workload::Workload &workload)
{
    target.workloadTags = tagsOf(workload).tags;
    target.families = Vocabulary::instance().familiesOf({workload.oracle});
    target.dtypes.clear();
    for (const workload::Tensor &tensor : workload.tensors) {
        const std::string dtype = kernel::toString(tensor.dtype);
        if (tensor.role == workload::Role::Input && tensor.shape.size() >= 2
            && std::find(target.dtypes.begin(), target.dtypes.end(), dtype) == target.dtypes.end())
            target.dtypes.push_back(dtype);
    }
    if (!workload.cases.empty())
        addSizes(target.values, workload, workload.cases.front());
}

void describeCode(Target &target, std::string_view code)
{
    std::set<std::string, std::less<>> words;
    const auto isWord = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    // The comments too: where a line of code was not understood, a word too many blocks nothing.
    for (std::size_t at = 0; at < code.size();) {
        std::size_t end = at;
        while (end < code.size() && isWord(code[end]))
            ++end;
        if (end > at && (code[at] < '0' || code[at] > '9'))
            words.emplace(code.substr(at, end - at));
        at = std::max(end, at + 1);
    }
    target.words.assign(words.begin(), words.end());
}

void describeFeatures(Target &target, std::string_view code, const std::vector<CardRecord> &library)
{
    const std::string bare = withoutComments(code);
    const Vocabulary &vocabulary = Vocabulary::instance();
    const auto isIn = [](const std::vector<Feature> &list, const Feature &feature) {
        return std::find(list.begin(), list.end(), feature) != list.end();
    };
    std::vector<const Card *> cards;
    for (const CardRecord &record : library) {
        if (isOfItsFamilies(target, record.card))
            cards.push_back(&record.card);
    }
    std::vector<Feature> shown;
    for (const Card *card : cards) {
        for (const Feature &feature : card->provides) {
            if (!isIn(shown, feature) && vocabulary.showsFeature(bare, feature.name))
                shown.push_back(feature);
        }
    }
    const auto provides = [&](const Card &card) {
        return !card.provides.empty()
               && std::all_of(card.provides.begin(), card.provides.end(),
                              [&](const Feature &feature) { return isIn(shown, feature); });
    };
    // Until nothing is added: what is there rests on something.
    for (std::size_t before = 0; before != shown.size();) {
        before = shown.size();
        for (const Card *card : cards) {
            if (!provides(*card))
                continue;
            for (const Feature &feature : card->requirements) {
                if (!isIn(shown, feature))
                    shown.push_back(feature);
            }
        }
    }
    for (const Card *card : cards) {
        std::vector<std::string> &actions = target.priorActions;
        if (provides(*card) && std::find(actions.begin(), actions.end(), card->category) == actions.end())
            actions.push_back(card->category);
    }
    for (const Feature &feature : shown) {
        if (!isIn(target.features, feature))
            target.features.push_back(feature);
    }
}

void describeTrial(Target &target, const gate::Trial &trial)
{
    std::map<std::string, double> largest;
    for (const gate::Metric &metric : trial.metrics) {
        const auto [found, added] = largest.emplace(metric.name, metric.value);
        if (!added)
            found->second = std::max(found->second, metric.value);
    }
    for (const auto &[name, value] : largest)
        target.values[name] = value;
}

std::optional<Target> targetAt(const lineage::Lineage &lineage, std::string_view state,
                               const std::vector<CardRecord> &library)
{
    if (!lineage.findState(state))
        return std::nullopt;
    Target target;
    target.workload = lineage.workload;
    target.language = kernel::toString(lineage.surface);
    target.platform = lineage.platform;
    for (const lineage::State &at : lineage.states) {
        if (const lineage::Transition *step = lineage.transitionTo(at.id)) {
            target.priorActions.push_back(step->category);
            const auto card = std::find_if(library.begin(), library.end(), [&](const CardRecord &record) {
                return record.card.name == step->card;
            });
            if (card != library.end())
                target.features.insert(target.features.end(), card->card.provides.begin(),
                                       card->card.provides.end());
        }
        if (at.id == state) {
            if (const gate::Trial *trial = lineage.trialOf(at))
                describeTrial(target, *trial);
            if (const Result<std::string> code = kernel::readCandidateText(lineage.directory / at.file))
                describeCode(target, *code);
            break;
        }
    }
    return target;
}

} // namespace klineage::skills
