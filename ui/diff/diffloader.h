// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/diffspec.h"
#include "ui/highlight/jobslot.h"

#include <QHash>
#include <QObject>

#include <list>

namespace klineage::ui {

/// Makes documents on worker threads and remembers the last ones. Lives on the GUI thread.
class DiffLoader : public QObject
{
    Q_OBJECT

public:
    explicit DiffLoader(QObject *parent = nullptr);
    ~DiffLoader() override;

    /// The document when it is at hand; otherwise null, and loaded() follows unless another request comes first.
    DocumentPtr load(const DiffSpec &spec);
    /// Makes documents that will probably be asked for next, one after the other; replaces earlier wishes.
    void prefetch(const std::vector<DiffSpec> &specs);
    void cancel();
    [[nodiscard]] bool has(const DiffSpec &spec) const { return m_documents.contains(spec.key()); }

signals:
    void loaded(const QString &key, const klineage::ui::DocumentPtr &document);

private:
    class SideCache;

    [[nodiscard]] static DocumentPtr make(const DiffSpec &spec, SideCache &cache,
                                          const std::stop_token &stop);
    void remember(const QString &key, const DocumentPtr &document);

    JobSlot m_loading;
    JobSlot m_prefetching;
    std::shared_ptr<SideCache> m_sides; ///< shared with the jobs
    QHash<QString, DocumentPtr> m_documents;
    std::list<QString> m_order; ///< most recently used first
};

} // namespace klineage::ui
