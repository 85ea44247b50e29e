// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/roundtrip/roundtriprecord.h"
#include "ui/highlight/jobslot.h"

#include <QObject>
#include <QString>

#include <filesystem>
#include <memory>

namespace klineage::ui {

/// Reads what is recorded of one lineage's roundtrips, in the background and only when somebody wants to see it. GUI thread.
class RoundtripReader : public QObject
{
    Q_OBJECT

public:
    using QObject::QObject;

    /// Reads anew where log or trials are others than before; changed() follows when they are. An empty folder has nothing.
    void look(const std::filesystem::path &lineageDirectory);
    /// null until the folder that was looked at last was read, and where it cannot be.
    [[nodiscard]] const run::RoundtripRecord *record() const { return m_record.get(); }
    /// Why it cannot be read; empty: it can, or was not yet.
    [[nodiscard]] const QString &problem() const { return m_problem; }
    [[nodiscard]] bool isReading() const { return m_isReading; }

signals:
    void changed();

private:
    JobSlot m_reading;
    bool m_isReading = false;
    std::filesystem::path m_directory;
    std::string m_stamp;
    std::shared_ptr<const run::RoundtripRecord> m_record;
    QString m_problem;
};

} // namespace klineage::ui
