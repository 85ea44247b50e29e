// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/retrieval/sources.h"

#include <algorithm>

namespace klineage::skills {

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
        if (at.id == state)
            break;
    }
    return target;
}

} // namespace klineage::skills
