"""Trials become experiments, of which they are the kind without a data set."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("gateway", "0006_teams")]

    operations = [
        # A renamed field is not renamed in constraints and orders: they go before it, and come back with its new name.
        migrations.RemoveConstraint("TrialInput", "one_trial_input_per_position"),
        migrations.RemoveConstraint("TrialAnswer", "one_trial_answer_per_candidate"),
        migrations.AlterModelOptions("TrialInput", {}),
        migrations.AlterModelOptions("TrialAnswer", {}),
        migrations.RenameModel("TrialAnswer", "ExperimentAnswer"),
        migrations.RenameModel("TrialInput", "ExperimentItem"),
        migrations.RenameModel("Trial", "Experiment"),
        migrations.RenameField("Experiment", "input_limit", "item_limit"),
        migrations.RenameField("ExperimentItem", "trial", "experiment"),
        migrations.RenameField("ExperimentAnswer", "input", "item"),
        migrations.RenameIndex("Experiment", new_name="experiments_of_project", old_name="trials_of_project"),
        migrations.AlterModelOptions("ExperimentItem", {"ordering": ["experiment_id", "position"]}),
        migrations.AlterModelOptions("ExperimentAnswer", {"ordering": ["item_id", "candidate"]}),
        migrations.AddConstraint(
            "ExperimentItem",
            models.UniqueConstraint(fields=["experiment", "position"], name="one_experiment_item_per_position"),
        ),
        migrations.AddConstraint(
            "ExperimentAnswer",
            models.UniqueConstraint(fields=["item", "candidate"], name="one_experiment_answer_per_candidate"),
        ),
        # Names on the side of the model alone: the database does not change.
        migrations.AlterField(
            "Experiment",
            "project",
            models.ForeignKey("core.Project", on_delete=django.db.models.deletion.CASCADE, related_name="experiments"),
        ),
        migrations.AlterField(
            "ExperimentItem",
            "experiment",
            models.ForeignKey("gateway.Experiment", on_delete=django.db.models.deletion.CASCADE, related_name="items"),
        ),
    ]
