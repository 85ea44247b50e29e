// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/machine/coderequest.h"

namespace klineage::ui {

CodeRequest codeRequest(const lineage::Lineage &lineage, const lineage::RowRef &row, CodeForm form)
{
    CodeRequest request;
    request.form = form;
    request.label = row.id.starts_with("trial:") ? QString::fromStdString(row.id.substr(6, 8))
                                                 : QString::fromStdString(row.id);
    request.file = row.file;
    request.directory = lineage.directory;
    const std::string &platform = row.trial ? row.trial->environment.platform : lineage.platform;
    request.target = lineage.surface.device().target(platform);
    if (!row.trial)
        return request;
    request.hasTrial = true;
    request.trial = row.trial->id;
    request.candidate = row.trial->candidate;
    request.device = row.trial->environment.device;
    request.listing = row.trial->listing;
    request.tunables = row.trial->tunables;
    return request;
}

} // namespace klineage::ui
