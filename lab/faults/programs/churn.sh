# Move the endpoint of the Service "churn" to another address, again and again.
number=0
while [ -e "$KUBECONFIG" ]; do # until the lab is gone
    number=$((number % 200 + 1))
    kubectl patch endpointslice churn --type json -p "[{\"op\":\"replace\",\"path\":\"/endpoints/0/addresses/0\",\"value\":\"192.0.2.$number\"}]"
    sleep 0.3
done
